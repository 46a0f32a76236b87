// Dropout with the CPU's masks: element i of a key is kept or not by the same hash, one byte of mask per
// element.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pointwise.h"
#include "backend/dropout_hash.h"

namespace lockstep {
namespace {

template <class T>
struct Draw {
  const uint64_t* step;  // where a recorded step finds its key; null: it is in `key`
  DropoutKey key;
  uint64_t chunk;
  uint32_t threshold;
  float scale;
  const T* x;
  T* y;
  uint8_t* keep;
  constexpr void operator()(size_t i) const {
    const DropoutKey now{step != nullptr ? *step : key.step, key.layer};
    const uint64_t subkeys = counter_word(now.word(), chunk);
    const uint32_t hash =
        dropout_hash(static_cast<uint32_t>(i), static_cast<uint32_t>(subkeys), static_cast<uint32_t>(subkeys >> 32));
    keep[i] = hash >= threshold ? 1 : 0;
    narrow(widen(x[i]) * (hash >= threshold ? scale : 0.0F), y[i]);
  }
};

template <class T>
struct Apply {
  float scale;
  const uint8_t* keep;
  const T* x;
  T* y;
  constexpr void operator()(size_t i) const { narrow(widen(x[i]) * (keep[i] != 0 ? scale : 0.0F), y[i]); }
};

class CudaDropout final : public DropoutPlan {
 public:
  CudaDropout(const cuda::Context& context, const DropoutSpec& spec)
      : context_(context), count_(static_cast<size_t>(spec.count)), type_(spec.dtype) {
    if (!(spec.p >= 0 && spec.p <= 1)) cuda::refuse("dropout: p must be from 0 to 1, found " + std::to_string(spec.p));
    const double threshold = std::round(spec.p * 0x1p32);
    drop_all_ = threshold >= 0x1p32;  // no 32-bit hash reaches it
    threshold_ = drop_all_ ? 0 : static_cast<uint32_t>(threshold);
    scale_ = spec.p == 1 ? 0.0F : 1.0F / static_cast<float>(1 - spec.p);
  }
  size_t saved_bytes() const override { return count_; }

  void forward(const void* x, void* y, const DropoutKey& key, void* saved) override {
    if (drop_all_) {
      context_.fill_zero(context_.compute(), saved, count_);
      return apply(x, y, saved);
    }
    constexpr size_t chunk = size_t{1} << 32;  // elements of one pair of subkeys
    cuda::by_type(type_, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      for (size_t begin = 0; begin < count_; begin += chunk) {
        cuda::launch(
            context_.compute().get(), std::min(count_ - begin, chunk),
            Draw<T>{context_.values().key(), key, begin / chunk, threshold_, scale_, static_cast<const T*>(x) + begin,
                    static_cast<T*>(y) + begin, static_cast<uint8_t*>(saved) + begin});
      }
    });
  }
  void forward_with_mask(const void* x, void* y, const uint8_t* keep, void* saved) override {
    if (keep != saved)
      cuda::check(cudaMemcpyAsync(saved, keep, count_, cudaMemcpyDeviceToDevice, context_.compute().get()),
                  "cudaMemcpyAsync");
    apply(x, y, saved);
  }
  void backward(const void* dy, void* dx, const void* saved) override { apply(dy, dx, saved); }

 private:
  void apply(const void* x, void* y, const void* keep) const {
    cuda::by_type(type_, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      cuda::launch(context_.compute().get(), count_,
                   Apply<T>{scale_, static_cast<const uint8_t*>(keep), static_cast<const T*>(x), static_cast<T*>(y)});
    });
  }

  const cuda::Context& context_;
  size_t count_;
  DType type_;
  uint32_t threshold_ = 0;
  bool drop_all_ = false;
  float scale_ = 1;
};

}  // namespace

std::unique_ptr<DropoutPlan> make_cuda_dropout(const cuda::Context& context, const DropoutSpec& spec) {
  return std::make_unique<CudaDropout>(context, spec);
}

}  // namespace lockstep
