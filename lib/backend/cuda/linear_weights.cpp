#include "backend/cuda/linear_weights.h"

#include "core/error.h"

namespace lockstep {

CudaLinearWeights::CudaLinearWeights(const TensorDesc& input, int64_t out_features)
    : out_(static_cast<size_t>(out_features)),
      channels_(static_cast<size_t>(input.shape[1])),
      spatial_(static_cast<size_t>(input.shape.without_front().without_front().numel())),
      block_(static_cast<size_t>(input.channel_block)) {}

// Calls visit(canonical index, stored index) for every weight.
template <class Visit>
void CudaLinearWeights::for_each(const Visit& visit) const {
  size_t canonical = 0;
  for (size_t o = 0; o < out_; ++o)
    for (size_t c = 0; c < channels_; ++c)
      for (size_t s = 0; s < spatial_; ++s)
        visit(canonical++, o * channels_ * spatial_ + (c / block_ * spatial_ + s) * block_ + c % block_);
}

void CudaLinearWeights::store(std::span<const float> canonical, std::span<float> stored) const {
  for_each([&](size_t from, size_t to) { stored[to] = canonical[from]; });
}

void CudaLinearWeights::load(std::span<const float> stored, std::span<float> canonical) const {
  for_each([&](size_t to, size_t from) { canonical[to] = stored[from]; });
}

std::shared_ptr<const CudaLinearWeights> cuda_linear_weights(const LinearSpec& spec) {
  std::shared_ptr<const CudaLinearWeights> wanted;
  if (spec.input.channel_block > 1) wanted = std::make_shared<CudaLinearWeights>(spec.input, spec.out_features);
  if (!spec.stored) return wanted;
  const auto stored = std::dynamic_pointer_cast<const CudaLinearWeights>(spec.weight_format);
  const bool alike = wanted && stored ? *wanted == *stored : !wanted && !spec.weight_format;
  if (!alike)
    throw_error("linear: the weights are stored in another order than that of the {} inputs",
                spec.input.shape.without_front().str());
  return stored;
}

}  // namespace lockstep
