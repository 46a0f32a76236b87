// Fully connected weights behind an activation with channel blocks: PyTorch's rows, each in the activation's order.
#pragma once

#include <memory>

#include "backend/specs.h"
#include "backend/weight_format.h"

namespace lockstep {

class CudaLinearWeights final : public WeightFormat {
 public:
  // input: [N, C, ...] with any channel block.
  CudaLinearWeights(const TensorDesc& input, int64_t out_features);
  size_t stored_count() const override { return out_ * channels_ * spatial_; }
  void store(std::span<const float> canonical, std::span<float> stored) const override;
  void load(std::span<const float> stored, std::span<float> canonical) const override;
  bool operator==(const CudaLinearWeights& other) const {
    return out_ == other.out_ && channels_ == other.channels_ && spatial_ == other.spatial_ && block_ == other.block_;
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const;
  size_t out_, channels_, spatial_, block_;
};

// Null for an input without blocks: PyTorch's layout. Throws Error where the stored weights have another one.
std::shared_ptr<const CudaLinearWeights> cuda_linear_weights(const LinearSpec& spec);

}  // namespace lockstep
