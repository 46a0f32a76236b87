// Group normalisation: a row is one group of channels of one image; weight and bias belong to channels.
#include <algorithm>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/layer_norm.h"
#include "core/error.h"

namespace lockstep {
namespace {

class CpuGroupNorm final : public GroupNormPlan {
 public:
  explicit CpuGroupNorm(const GroupNormSpec& spec) : spec_(spec) {
    const Shape& shape = spec.input.shape;
    if (shape.rank() < 2) throw_error("group_norm: expected an input [N, C, ...], found {}", shape.str());
    if (spec.groups < 1 || shape[1] < 1 || shape[1] % spec.groups != 0)
      throw_error("group_norm: {} channels cannot be split into {} groups", shape[1], spec.groups);
    if (spec.input.channel_block != 1)
      throw_error("group_norm: expected channel block 1, found {}", spec.input.channel_block);
    channels_ = shape[1] / spec.groups;
    rows_ = shape[0] * spec.groups;
    for (int axis = 2; axis < shape.rank(); ++axis) spatial_ *= shape[axis];
  }
  size_t saved_bytes() const override { return static_cast<size_t>(rows_) * 2 * sizeof(double); }
  size_t workspace_bytes() const override { return static_cast<size_t>(spec_.input.shape[1]) * 2 * sizeof(double); }

  void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) override {
    auto* statistics = static_cast<double*>(saved);
    row_statistics(rows_, channels_ * spatial_, spec_.eps, x, statistics);
    for (int64_t r = 0; r < rows_; ++r) {
      const double mean = statistics[2 * r], rstd = statistics[2 * r + 1];
      for (int64_t c = 0; c < channels_; ++c, x += spatial_, y += spatial_) {
        const int64_t channel = r % spec_.groups * channels_ + c;
        const double scale = weight != nullptr ? rstd * static_cast<double>(weight[channel]) : rstd;
        const double shift = bias != nullptr ? static_cast<double>(bias[channel]) : 0.0;
        for (int64_t s = 0; s < spatial_; ++s)
          y[s] = static_cast<float>((static_cast<double>(x[s]) - mean) * scale + shift);
      }
    }
  }

  // As layer_norm, with one weight per channel: the group's sums are sums of its channels' sums.
  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void* workspace) override {
    const auto* statistics = static_cast<const double*>(saved);
    const int64_t all_channels = spec_.input.shape[1], inner = channels_ * spatial_;
    auto *dw = static_cast<double*>(workspace), *db = dw + all_channels;
    std::fill_n(dw, 2 * all_channels, 0.0);
    for (int64_t r = 0; r < rows_; ++r, x += inner, dy += inner, dx += dx == nullptr ? 0 : inner) {
      const double mean = statistics[2 * r], rstd = statistics[2 * r + 1];
      const int64_t first = r % spec_.groups * channels_;
      double sum = 0, sum_normal = 0;
      for (int64_t c = 0; c < channels_; ++c) {
        double channel_sum = 0, channel_normal = 0;
        for (int64_t i = c * spatial_; i < (c + 1) * spatial_; ++i) {
          const double gradient = dy[i];
          channel_sum += gradient;
          channel_normal += gradient * (static_cast<double>(x[i]) - mean) * rstd;
        }
        db[first + c] += channel_sum;
        dw[first + c] += channel_normal;
        const double w = weight != nullptr ? static_cast<double>(weight[first + c]) : 1.0;
        sum += w * channel_sum;
        sum_normal += w * channel_normal;
      }
      if (dx == nullptr) continue;
      const double mean_sum = sum / static_cast<double>(inner), mean_normal = sum_normal / static_cast<double>(inner);
      for (int64_t i = 0; i < inner; ++i) {
        const double w = weight != nullptr ? static_cast<double>(weight[first + i / spatial_]) : 1.0;
        const double normal = (static_cast<double>(x[i]) - mean) * rstd;
        dx[i] = static_cast<float>(rstd * (w * static_cast<double>(dy[i]) - mean_sum - normal * mean_normal));
      }
    }
    for (int64_t c = 0; c < all_channels; ++c) {
      if (dweight != nullptr) dweight[c] = (accumulate ? dweight[c] : 0.0F) + static_cast<float>(dw[c]);
      if (dbias != nullptr) dbias[c] = (accumulate ? dbias[c] : 0.0F) + static_cast<float>(db[c]);
    }
  }

 private:
  GroupNormSpec spec_;
  int64_t channels_ = 0, rows_ = 0, spatial_ = 1;  // channels of one group, groups of all images, pixels
};

}  // namespace

std::unique_ptr<GroupNormPlan> make_cpu_group_norm(const GroupNormSpec& spec) {
  return std::make_unique<CpuGroupNorm>(spec);
}

}  // namespace lockstep
