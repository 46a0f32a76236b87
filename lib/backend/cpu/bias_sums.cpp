#include "backend/cpu/bias_sums.h"

#include "backend/cpu/batch_norm.h"
#include "core/cpu_features.h"

namespace lockstep {

BiasSums::BiasSums(const TensorDesc& output) : output_(output), sums_(static_cast<size_t>(output.shape[1])) {}

void BiasSums::run(const float* dy, float* db, bool accumulate) {
  const NormKernels& kernels = select_isa(isa_generic::norm_kernels, isa_avx2::norm_kernels, isa_avx512::norm_kernels);
  kernels.sums(channel_layout(output_), dy, sums_.data());
  for (size_t c = 0; c < sums_.size(); ++c) db[c] = (accumulate ? db[c] : 0.0F) + static_cast<float>(sums_[c]);
}

}  // namespace lockstep
