// Fully connected weights as the CPU keeps them: [in][out], the inputs in the order in which the activation has them.
// One layout for own kernels and oneDNN alike, so each batch size may take whichever is faster.
#pragma once

#include "backend/specs.h"
#include "backend/weight_format.h"

namespace lockstep {

class LinearWeights final : public WeightFormat {
 public:
  // input: [N, K] or [N, C, H, W] with any channel block.
  LinearWeights(const TensorDesc& input, int64_t out_features);
  size_t stored_count() const override;
  void store(std::span<const float> canonical, std::span<float> stored) const override;
  void load(std::span<const float> stored, std::span<float> canonical) const override;
  // Does an input of this description meet the weights in their order?
  bool matches(const TensorDesc& input) const;
  int64_t channels() const { return channels_; }
  int64_t channel_block() const { return channel_block_; }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const;
  int64_t out_, channels_, spatial_, channel_block_;
};

// The format of a new plan, or the stored one after checking that it belongs to a layer of this size.
std::shared_ptr<const LinearWeights> linear_weights(const LinearSpec& spec);

}  // namespace lockstep
