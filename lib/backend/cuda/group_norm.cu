// Group normalisation: a row is one group of channels of one image; weight and bias belong to channels. In double as on
// the CPU.
#include <cmath>

#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pair_sum.h"
#include "backend/cuda/row_statistics.h"

namespace lockstep::cuda {
namespace {

// Planes of `spatial` numbers, one per image and channel; `of_group` planes are a group.
struct Planes {
  size_t channels, of_group, spatial;
  const double* statistics;
  constexpr size_t channel(size_t plane) const {
    return static_cast<uint32_t>(plane) % static_cast<uint32_t>(channels);
  }
  constexpr size_t group(size_t plane) const {  // of all images
    return static_cast<uint32_t>(plane) / static_cast<uint32_t>(of_group);
  }
  constexpr double mean(size_t plane) const { return statistics[2 * group(plane)]; }
  constexpr double rstd(size_t plane) const { return statistics[2 * group(plane) + 1]; }
};

constexpr double weight_of(const float* weight, size_t channel) {
  return weight != nullptr ? static_cast<double>(weight[channel]) : 1.0;
}

struct Forward : Planes {
  const float *x, *weight, *bias;
  float* y;
  Forward(const Planes& planes, const float* from, const float* w, const float* b, float* to)
      : Planes(planes), x(from), weight(w), bias(b), y(to) {}
  constexpr void operator()(size_t plane, size_t s) const {
    const size_t i = plane * spatial + s, c = channel(plane);
    const double scale = rstd(plane) * weight_of(weight, c), shift = bias != nullptr ? static_cast<double>(bias[c]) : 0;
    y[i] = static_cast<float>((static_cast<double>(x[i]) - mean(plane)) * scale + shift);
  }
};

// Of a plane: the sums of dy xhat and of dy.
struct PlaneSums : Planes, AddPairs {
  const float *x, *dy;
  PlaneSums(const Planes& planes, const float* input, const float* from) : Planes(planes), x(input), dy(from) {}
  constexpr PairSum operator()(size_t s, size_t plane) const {
    const size_t i = plane * spatial + s;
    const double gradient = dy[i];
    return {gradient * (static_cast<double>(x[i]) - mean(plane)) * rstd(plane), gradient};
  }
};

struct Store {
  PairSum* to;
  constexpr void operator()(size_t i, const PairSum& sums) const { to[i] = sums; }
};

// Of a channel over the images, and of a group over its channels, both from the sums of planes.
struct ChannelSums : AddPairs {
  size_t channels;
  const PairSum* planes;
  ChannelSums(size_t c, const PairSum* sums) : channels(c), planes(sums) {}
  constexpr PairSum operator()(size_t image, size_t c) const { return planes[image * channels + c]; }
};

struct GroupMeans {
  Planes layout;
  const PairSum* planes;
  const float* weight;
  PairSum* means;
  constexpr void operator()(size_t group) const {
    PairSum sums{0, 0};
    for (size_t k = 0; k < layout.of_group; ++k) {
      const size_t plane = group * layout.of_group + k;
      const double w = weight_of(weight, layout.channel(plane));
      sums.first += w * planes[plane].first;
      sums.second += w * planes[plane].second;
    }
    const double count = static_cast<double>(layout.of_group * layout.spatial);
    means[group] = {sums.first / count, sums.second / count};
  }
};

struct InputGradient : Planes {
  const float *x, *dy, *weight;
  const PairSum* means;
  float* dx;
  InputGradient(const Planes& planes, const float* input, const float* from, const float* w, const PairSum* m,
                float* to)
      : Planes(planes), x(input), dy(from), weight(w), means(m), dx(to) {}
  constexpr void operator()(size_t plane, size_t s) const {
    const size_t i = plane * spatial + s;
    const PairSum& of_group_mean = means[group(plane)];
    const double normal = (static_cast<double>(x[i]) - mean(plane)) * rstd(plane);
    const double weighted = weight_of(weight, channel(plane)) * static_cast<double>(dy[i]);
    dx[i] = static_cast<float>(rstd(plane) * (weighted - of_group_mean.second - normal * of_group_mean.first));
  }
};

class CudaGroupNorm final : public GroupNormPlan {
 public:
  CudaGroupNorm(Context& context, const GroupNormSpec& spec) : context_(context), eps_(spec.eps) {
    const Shape& shape = spec.input.shape;
    for (int axis = 2; axis < shape.rank(); ++axis) spatial_ *= static_cast<size_t>(shape[axis]);
    images_ = static_cast<size_t>(shape[0]);
    channels_ = static_cast<size_t>(shape[1]);
    of_group_ = channels_ / static_cast<size_t>(spec.groups);
    groups_ = images_ * static_cast<size_t>(spec.groups);
    if (images_ * channels_ > UINT32_MAX) refuse("group_norm: an input " + shape.str() + " is too large");
    statistics_ = row_statistics_shape(groups_, of_group_ * spatial_);
    plane_sums_ = row_statistics_shape(images_ * channels_, spatial_);
    channel_sums_ = column_shape(images_, channels_, false);
    parts_ = context.allocate(statistics_.parts() * sizeof(PairSum));
  }
  size_t saved_bytes() const override { return groups_ * 2 * sizeof(double); }
  size_t workspace_bytes() const override {
    const size_t parts = plane_sums_.parts() > channel_sums_.parts() ? plane_sums_.parts() : channel_sums_.parts();
    return (images_ * channels_ + groups_ + parts) * sizeof(PairSum);
  }

  void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) override {
    auto* statistics = static_cast<double*>(saved);
    row_statistics(stream(), statistics_, eps_, x, static_cast<PairSum*>(parts_.data()), statistics);
    launch_matrix(stream(), images_ * channels_, spatial_, Forward(planes(statistics), x, weight, bias, y));
  }

  // As layer_norm, with one weight per channel: the group's sums are sums of its planes' sums.
  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void* workspace) override {
    const Planes layout = planes(static_cast<const double*>(saved));
    auto *sums = static_cast<PairSum*>(workspace), *means = sums + images_ * channels_, *parts = means + groups_;
    launch_columns(stream(), plane_sums_, PlaneSums(layout, x, dy), parts, Store{sums});
    launch_columns(stream(), channel_sums_, ChannelSums(channels_, sums), parts,
                   AddToParameters{dweight, dbias, accumulate});
    if (dx == nullptr) return;
    launch(stream(), groups_, GroupMeans{layout, sums, weight, means});
    launch_matrix(stream(), images_ * channels_, spatial_, InputGradient(layout, x, dy, weight, means, dx));
  }

 private:
  Planes planes(const double* statistics) const { return {channels_, of_group_, spatial_, statistics}; }
  cudaStream_t stream() const { return context_.compute().get(); }

  Context& context_;
  double eps_;
  size_t images_ = 0, channels_ = 0, of_group_ = 0, groups_ = 0, spatial_ = 1;  // groups of all images
  ColumnShape statistics_{}, plane_sums_{}, channel_sums_{};
  Buffer parts_;
};

}  // namespace

std::unique_ptr<GroupNormPlan> make_group_norm(Context& context, const GroupNormSpec& spec) {
  const Shape& shape = spec.input.shape;
  if (shape.rank() < 2) refuse("group_norm: expected an input [N, C, ...], found " + shape.str());
  if (spec.groups < 1 || shape[1] < 1 || shape[1] % spec.groups != 0)
    refuse("group_norm: " + std::to_string(shape[1]) + " channels cannot be split into " + std::to_string(spec.groups) +
           " groups");
  if (spec.input.channel_block != 1)
    refuse("group_norm: expected channel block 1, found " + std::to_string(spec.input.channel_block));
  return std::make_unique<CudaGroupNorm>(context, spec);
}

}  // namespace lockstep::cuda
