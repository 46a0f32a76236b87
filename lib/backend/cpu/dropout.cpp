// Dropout: the mask is kept as one byte per element. The factor 1 / (1 - p) is rounded as PyTorch rounds it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/isa/dropout_kernels.h"
#include "backend/cpu/pointwise.h"
#include "core/counter_rng.h"
#include "core/cpu_features.h"
#include "core/error.h"

namespace lockstep {
namespace {

const DropoutKernels& kernels(DType type) {
  return select_isa(isa_generic::dropout_kernels, isa_avx2::dropout_kernels,
                    isa_avx512::dropout_kernels)[type_index(type)];
}

class CpuDropout final : public DropoutPlan {
 public:
  explicit CpuDropout(const DropoutSpec& spec)
      : kernels_(kernels(spec.dtype)), count_(static_cast<size_t>(spec.count)), element_(size_of(spec.dtype)) {
    if (!(spec.p >= 0 && spec.p <= 1)) throw_error("dropout: p must be from 0 to 1, found {}", spec.p);
    // A 32-bit hash cannot be >= 2^32: where that is the nearest threshold, nothing survives.
    const double threshold = std::round(spec.p * 0x1p32);
    drop_all_ = threshold >= 0x1p32;
    threshold_ = drop_all_ ? 0 : static_cast<uint32_t>(threshold);
    scale_ = spec.p == 1 ? 0.0F : 1.0F / static_cast<float>(1 - spec.p);
  }
  size_t saved_bytes() const override { return count_; }

  void forward(const void* x, void* y, const DropoutKey& key, void* saved) override {
    auto* keep = static_cast<uint8_t*>(saved);
    if (drop_all_) {
      std::memset(keep, 0, count_);
      kernels_.apply(count_, scale_, keep, x, y);
      return;
    }
    constexpr size_t kChunk = size_t{1} << 32;  // elements of one pair of subkeys
    for (size_t begin = 0; begin < count_; begin += kChunk) {
      const uint64_t subkeys = counter_word(key.word(), begin / kChunk);
      kernels_.forward(std::min(count_ - begin, kChunk), static_cast<uint32_t>(subkeys),
                       static_cast<uint32_t>(subkeys >> 32), threshold_, scale_,
                       static_cast<const std::byte*>(x) + begin * element_,
                       static_cast<std::byte*>(y) + begin * element_, keep + begin);
    }
  }
  void forward_with_mask(const void* x, void* y, const uint8_t* keep, void* saved) override {
    if (keep != saved) std::memcpy(saved, keep, count_);
    kernels_.apply(count_, scale_, keep, x, y);
  }
  void backward(const void* dy, void* dx, const void* saved) override {
    kernels_.apply(count_, scale_, static_cast<const uint8_t*>(saved), dy, dx);
  }

 private:
  const DropoutKernels& kernels_;
  size_t count_, element_;  // bytes
  uint32_t threshold_ = 0;
  bool drop_all_ = false;
  float scale_ = 1;
};

}  // namespace

std::unique_ptr<DropoutPlan> make_cpu_dropout(const DropoutSpec& spec) { return std::make_unique<CpuDropout>(spec); }

}  // namespace lockstep
