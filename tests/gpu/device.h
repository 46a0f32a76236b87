// A backend, and arrays on it that are told and read as PyTorch would have them: what a table of operations needs to
// run each of them on the CPU and on the GPU.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "backend/backend.h"

namespace lockstep::test {

using Floats = std::vector<float>;

// Standard normal numbers, the same for every backend.
inline Floats normal(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(0, 1);
  Floats values(count);
  for (float& value : values) value = draw(engine);
  return values;
}

class Device {
 public:
  explicit Device(Backend& backend) : backend_(backend) {}
  Backend& backend() { return backend_; }

  float* put(const Floats& values) {
    backend_.memory().upload(floats(make(values.size() * sizeof(float))), values.data(), values.size() * sizeof(float));
    return floats(arrays_.back().data());
  }
  int64_t* put(const std::vector<int64_t>& values) {
    const size_t bytes = values.size() * sizeof(int64_t);
    void* made = make(bytes);
    backend_.memory().upload(made, values.data(), bytes);
    return static_cast<int64_t*>(made);
  }
  // Activations in the layout and type of a description.
  void* put(const Floats& canonical, const TensorDesc& desc) {
    const float* from = put(canonical);
    void* made = make(desc.bytes());
    backend_.reorder({desc.shape, 1, DType::f32}, from, desc, made);
    return made;
  }
  void* make(size_t bytes) {  // zeroed
    arrays_.push_back(backend_.allocate(bytes));
    return arrays_.back().data();
  }
  float* zeros(size_t count) { return floats(make(count * sizeof(float))); }

  Floats get(const float* from, size_t count) {
    Floats values(count);
    backend_.memory().download(values.data(), from, count * sizeof(float));
    return values;
  }
  Floats get(const void* from, const TensorDesc& desc) {
    const auto count = static_cast<size_t>(desc.shape.numel());
    float* canonical = zeros(count);
    backend_.reorder(desc, from, {desc.shape, 1, DType::f32}, canonical);
    return get(canonical, count);
  }

  // Parameters as a plan stores them, and back.
  float* put_weights(const Floats& canonical, const WeightFormatPtr& format) {
    if (!format) return put(canonical);
    Floats stored(format->stored_count());
    format->store(canonical, stored);
    return put(stored);
  }
  Floats get_weights(const float* from, size_t count, const WeightFormatPtr& format) {
    if (!format) return get(from, count);
    Floats canonical(count);
    format->load(get(from, format->stored_count()), canonical);
    return canonical;
  }

 private:
  static float* floats(void* memory) { return static_cast<float*>(memory); }
  Backend& backend_;
  std::vector<Buffer> arrays_;
};

}  // namespace lockstep::test
