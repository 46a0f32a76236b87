// A simulated GPU and arrays on it, for tests that run a plan of the CUDA backend beside the CPU's.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "backend/cpu/pointwise.h"
#include "backend/cuda/context.h"
#include "sim/runtime/control.h"

namespace lockstep::test {

using Bytes = std::vector<std::byte>;

inline TensorDesc plain(const TensorDesc& desc) {
  return {.shape = desc.shape, .channel_block = 1, .dtype = DType::f32};
}

// Between PyTorch's layout in fp32 and the layout and type of a tensor.
inline Bytes stored(const TensorDesc& desc, const std::vector<float>& canonical) {
  Bytes bytes(desc.bytes());
  reorder_channels(plain(desc), canonical.data(), desc, bytes.data());
  return bytes;
}
inline std::vector<float> canonical(const TensorDesc& desc, const Bytes& bytes) {
  std::vector<float> values(static_cast<size_t>(desc.shape.numel()));
  reorder_channels(desc, bytes.data(), plain(desc), values.data());
  return values;
}

class GpuArrays {
 public:
  // Nothing of an earlier one may be in use.
  explicit GpuArrays(uint64_t seed = 1) : context_(reset(seed)) {}
  cuda::Context& context() { return context_; }

  // Device memory with these values, or of so many bytes that are no numbers. Null for none, as for memory.
  void* put(std::span<const std::byte> bytes) {
    if (bytes.empty()) return nullptr;
    memory_.push_back(context_.allocate(bytes.size()));
    const Buffer host = context_.pinned(bytes.size());
    std::memcpy(host.data(), bytes.data(), bytes.size());
    context_.to_device(context_.compute(), memory_.back().data(), host.data(), bytes.size());
    context_.synchronize(context_.compute());
    return memory_.back().data();
  }
  void* put(const Bytes& bytes) { return put(std::span(bytes)); }
  float* put(const std::vector<float>& values) { return static_cast<float*>(put(std::as_bytes(std::span(values)))); }
  void* make(size_t bytes) { return put(Bytes(bytes, std::byte{0xff})); }
  float* floats(size_t count) { return static_cast<float*>(make(count * sizeof(float))); }

  // What the memory holds once the compute stream has come so far.
  Bytes get_bytes(const void* device, size_t bytes) {
    if (bytes == 0) return {};
    const Buffer host = context_.pinned(bytes);
    context_.to_host(context_.compute(), host.data(), device, bytes);
    context_.synchronize(context_.compute());
    const auto all = host.as<std::byte>();
    return {all.begin(), all.end()};
  }
  std::vector<float> get(const void* device, size_t count) {
    std::vector<float> values(count);
    const Bytes bytes = get_bytes(device, count * sizeof(float));
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  static int reset(uint64_t seed) {
    sim::reset({.seed = seed});
    return 0;
  }
  cuda::Context context_;
  std::vector<Buffer> memory_;
};

}  // namespace lockstep::test
