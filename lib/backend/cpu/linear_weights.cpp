#include "backend/cpu/linear_weights.h"

#include "core/error.h"

namespace lockstep {

static int64_t channels_of(const TensorDesc& input) { return input.shape[1]; }
static int64_t spatial_of(const TensorDesc& input) { return input.shape.without_front().without_front().numel(); }

LinearWeights::LinearWeights(const TensorDesc& input, int64_t out_features)
    : out_(out_features),
      channels_(channels_of(input)),
      spatial_(spatial_of(input)),
      channel_block_(input.channel_block) {}

size_t LinearWeights::stored_count() const { return static_cast<size_t>(out_ * channels_ * spatial_); }

// Calls visit(canonical index, stored index) for every weight.
template <class Visit>
void LinearWeights::for_each(const Visit& visit) const {
  size_t canonical = 0;
  for (int64_t o = 0; o < out_; ++o)
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t s = 0; s < spatial_; ++s) {
        const int64_t row = (c / channel_block_ * spatial_ + s) * channel_block_ + c % channel_block_;
        visit(canonical++, static_cast<size_t>(row * out_ + o));
      }
}

void LinearWeights::store(std::span<const float> canonical, std::span<float> stored) const {
  for_each([&](size_t from, size_t to) { stored[to] = canonical[from]; });
}

void LinearWeights::load(std::span<const float> stored, std::span<float> canonical) const {
  for_each([&](size_t to, size_t from) { canonical[to] = stored[from]; });
}

bool LinearWeights::matches(const TensorDesc& input) const {
  if (input.channel_block == 1 && channel_block_ == 1) return true;
  return channels_of(input) == channels_ && input.channel_block == channel_block_;
}

std::shared_ptr<const LinearWeights> linear_weights(const LinearSpec& spec) {
  if (!spec.stored) return std::make_shared<LinearWeights>(spec.input, spec.out_features);
  auto format = std::dynamic_pointer_cast<const LinearWeights>(spec.weight_format);
  const auto count = static_cast<size_t>(spec.out_features * spec.input.shape.without_front().numel());
  if (!format || format->stored_count() != count)
    throw_error("linear: the weights are not stored for {} inputs and {} outputs", spec.input.shape.str(),
                spec.out_features);
  return format;
}

}  // namespace lockstep
