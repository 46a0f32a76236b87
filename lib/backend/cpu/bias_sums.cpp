#include "backend/cpu/bias_sums.h"

#include "backend/cpu/batch_norm.h"
#include "backend/cpu/pointwise.h"
#include "core/cpu_features.h"

namespace lockstep {

BiasSums::BiasSums(const TensorDesc& output)
    : output_(output),
      sums_(static_cast<size_t>(output.shape[1])),
      wide_(output.dtype == DType::f32 ? 0 : static_cast<size_t>(output.shape.numel())) {}

void BiasSums::run(const void* dy, float* db, bool accumulate) {
  const auto* values = static_cast<const float*>(dy);
  if (output_.dtype != DType::f32) {
    half_kernels(output_.dtype).widen(wide_.size(), dy, wide_.data());
    values = wide_.data();
  }
  const NormKernels& kernels = select_isa(isa_generic::norm_kernels, isa_avx2::norm_kernels, isa_avx512::norm_kernels);
  kernels.sums(channel_layout(output_), values, sums_.data());
  for (size_t c = 0; c < sums_.size(); ++c) db[c] = (accumulate ? db[c] : 0.0F) + static_cast<float>(sums_[c]);
}

}  // namespace lockstep
