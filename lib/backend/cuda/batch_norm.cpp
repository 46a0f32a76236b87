// BatchNormPlan by kernels of our own. Over several ranks the statistics go to the host, where a StatisticsReducer adds
// them up, and back.
#include "backend/cpu/batch_norm.h"

#include <algorithm>
#include <vector>

#include "backend/cuda/batch_norm_kernels.h"
#include "backend/cuda/cuda_plans.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

class CudaBatchNorm final : public BatchNormPlan {
 public:
  CudaBatchNorm(Context& context, const BatchNormSpec& spec)
      : context_(context), spec_(spec), grid_(channel_grid(spec.input)), channels_(grid_.channels()) {
    if (training() && spec.across_ranks == nullptr && grid_.values() == 1) throw_one_value();
    coefficients_ = context.allocate(4 * channels_ * sizeof(float));
    if (!training()) return;
    parts_ = context.allocate(grid_.columns().parts() * sizeof(PairSum));
    if (spec.across_ranks == nullptr) return;
    shares_ = context.allocate(2 * channels_ * sizeof(double));
    host_ = context.pinned(2 * channels_ * sizeof(double));
    scratch_.resize(channels_ + 1);
  }

  size_t saved_bytes() const override { return training() ? (2 * channels_ + 1) * sizeof(double) : 0; }

  void forward(const float* x, const float* weight, const float* bias, float* running_mean, float* running_var,
               float* batches_tracked, float* y, void* saved) override {
    if (!training()) {
      use_running(stream(), channels_, spec_.eps, running_mean, running_var, weight, bias, affine());
      return apply(stream(), grid_, x, affine(), y);
    }
    StatisticsUse use = running(running_mean, running_var, batches_tracked);
    use.weight = weight, use.bias = bias;
    use.saved = static_cast<double*>(saved);
    use.affine = affine();
    if (spec_.across_ranks == nullptr) {
      use.count = static_cast<double>(grid_.values());
      count_batch(stream(), batches_tracked);
      use_statistics(stream(), grid_, x, parts(), use);
    } else {
      make_shares(stream(), grid_, x, parts(), shares());
      context_.to_host(context_.compute(), host_.data(), shares(), host_.bytes());
      context_.synchronize(context_.compute());
      take_all(use, static_cast<double>(grid_.values()), batches_tracked);
    }
    apply(stream(), grid_, x, affine(), y);
  }

  void forward_empty(float* running_mean, float* running_var, float* batches_tracked) override {
    if (spec_.across_ranks == nullptr) return;
    context_.wait(sent_);
    std::ranges::fill(host_.as<double>(), 0.0);
    take_all(running(running_mean, running_var, batches_tracked), 0, batches_tracked);
  }

  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void*) override {
    const GradientUse use{.channels = channels_,
                          .saved = static_cast<const double*>(saved),
                          .weight = weight,
                          .dweight = dweight,
                          .dbias = dbias,
                          .accumulate = accumulate,
                          .gradient = gradient(),
                          .sums = spec_.across_ranks == nullptr ? nullptr : shares()};
    sum_gradients(stream(), grid_, x, dy, parts(), use);
    if (spec_.across_ranks != nullptr) {
      context_.to_host(context_.compute(), host_.data(), shares(), host_.bytes());
      context_.synchronize(context_.compute());
      spec_.across_ranks->sum(host_.as<double>());
      send();
      use_gradient_sums(stream(), shares(), use);
    }
    if (dx != nullptr) apply(stream(), grid_, x, dy, gradient(), dx);
  }

  void backward_empty() override {
    if (spec_.across_ranks == nullptr) return;
    context_.wait(sent_);
    std::ranges::fill(host_.as<double>(), 0.0);
    spec_.across_ranks->sum(host_.as<double>());
  }

 private:
  [[noreturn]] void throw_one_value() const {
    throw_error("Expected more than 1 value per channel when training, found input {}; use a larger batch",
                spec_.input.shape.str());
  }

  // The host holds the statistics of `own` values: makes those of all ranks of them and uses these.
  void take_all(StatisticsUse use, double own, float* batches_tracked) {
    const std::span<double> values = host_.as<double>();
    ChannelStatistics statistics{.count = own, .mean = values.first(channels_), .m2 = values.last(channels_)};
    sum_over_ranks(*spec_.across_ranks, statistics, scratch_);
    if (statistics.count == 1) throw_one_value();
    if (statistics.count == 0) return;
    send();
    count_batch(stream(), batches_tracked);
    use.count = statistics.count;
    use_shares(stream(), shares(), use);
  }

  void send() {
    context_.to_device(context_.compute(), shares(), host_.data(), host_.bytes());
    context_.compute().record(sent_);
  }

  StatisticsUse running(float* running_mean, float* running_var, const float* batches_tracked) const {
    return {.channels = channels_,
            .count = 0,
            .eps = spec_.eps,
            .momentum = spec_.momentum.value_or(-1.0),
            .weight = nullptr,
            .bias = nullptr,
            .running_mean = running_mean,
            .running_var = running_var,
            .batches_tracked = batches_tracked,
            .saved = nullptr,
            .affine = {}};
  }

  bool training() const { return spec_.phase == Phase::training; }
  cudaStream_t stream() const { return context_.compute().get(); }
  PairSum* parts() const { return static_cast<PairSum*>(parts_.data()); }
  double* shares() const { return static_cast<double*>(shares_.data()); }
  float* coefficient(size_t which) const { return static_cast<float*>(coefficients_.data()) + which * channels_; }
  ChannelAffine affine() const { return {coefficient(0), coefficient(1), coefficient(2)}; }
  ChannelGradient gradient() const { return {coefficient(0), coefficient(1), coefficient(2), coefficient(3)}; }

  Context& context_;
  BatchNormSpec spec_;
  ChannelGrid grid_;
  size_t channels_;
  Buffer coefficients_, parts_;
  Buffer shares_, host_;         // of all ranks' statistics: on the device, and pinned
  std::vector<double> scratch_;  // what the reducer sums
  Event sent_;                   // what the host held is on its way no more
};

}  // namespace

std::unique_ptr<BatchNormPlan> make_batch_norm(Context& context, const BatchNormSpec& spec) {
  return std::make_unique<CudaBatchNorm>(context, spec);
}

}  // namespace lockstep::cuda
