#include "backend/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backend/cpu/cpu_plans.h"
#include "core/cpu_features.h"
#include "core/error.h"

namespace lockstep {

static const NormKernels& kernels() {
  return select_isa(isa_generic::norm_kernels, isa_avx2::norm_kernels, isa_avx512::norm_kernels);
}

ChannelLayout channel_layout(const TensorDesc& input) {
  const Shape& shape = input.shape;
  if (shape.rank() < 2) throw_error("normalisation: expected an input [N, C, ...], found {}", shape.str());
  int64_t spatial = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) spatial *= shape[axis];
  const int64_t block = spatial == 1 && input.channel_block == 1 ? shape[1] : input.channel_block;
  return {.images = shape[0], .blocks = block == 0 ? 0 : shape[1] / block, .spatial = spatial, .block = block};
}

void compute_statistics(const ChannelLayout& layout, const float* x, ChannelStatistics& out, float* mean_f32) {
  out.count = static_cast<double>(layout.images * layout.spatial);
  kernels().sums(layout, x, out.mean.data());
  for (size_t c = 0; c < out.mean.size(); ++c) {
    out.mean[c] /= out.count;
    mean_f32[c] = static_cast<float>(out.mean[c]);
  }
  kernels().centered_squares(layout, x, mean_f32, out.m2.data());
  // The squares are about the rounded mean: sum (x - m)^2 = sum (x - mean)^2 + count (mean - m)^2.
  for (size_t c = 0; c < out.mean.size(); ++c) {
    const double shift = out.mean[c] - static_cast<double>(mean_f32[c]);
    const double exact = out.m2[c] - out.count * shift * shift;
    out.m2[c] = exact < 0 ? 0 : exact;  // NaN stays
  }
}

void merge_statistics(ChannelStatistics& into, const ChannelStatistics& other) {
  const double count = into.count + other.count;
  if (other.count == 0) return;
  for (size_t c = 0; c < into.mean.size(); ++c) {
    const double delta = other.mean[c] - into.mean[c];
    into.mean[c] += delta * (other.count / count);
    into.m2[c] += other.m2[c] + delta * delta * (into.count * other.count / count);
  }
  into.count = count;
}

void sum_over_ranks(StatisticsReducer& reducer, ChannelStatistics& share, std::span<double> scratch) {
  const size_t channels = share.mean.size();
  const double own = share.count;
  for (size_t c = 0; c < channels; ++c) scratch[c] = own * share.mean[c];
  scratch[channels] = own;
  reducer.sum(scratch.first(channels + 1));
  share.count = scratch[channels];
  for (size_t c = 0; c < channels; ++c) {
    const double mean = share.count == 0 ? 0 : scratch[c] / share.count, shift = share.mean[c] - mean;
    share.m2[c] = own == 0 ? 0 : share.m2[c] + own * shift * shift;
    share.mean[c] = mean;
  }
  reducer.sum(share.m2);
}

void update_running(const ChannelStatistics& batch, std::optional<double> momentum, float* running_mean,
                    float* running_var, float* batches_tracked) {
  *batches_tracked += 1;
  const double factor = momentum ? *momentum : 1.0 / static_cast<double>(*batches_tracked);
  for (size_t c = 0; c < batch.mean.size(); ++c) {
    const double unbiased = batch.m2[c] / (batch.count - 1);
    running_mean[c] = static_cast<float>((1 - factor) * static_cast<double>(running_mean[c]) + factor * batch.mean[c]);
    running_var[c] = static_cast<float>((1 - factor) * static_cast<double>(running_var[c]) + factor * unbiased);
  }
}

namespace {

class CpuBatchNorm final : public BatchNormPlan {
 public:
  explicit CpuBatchNorm(const BatchNormSpec& spec)
      : spec_(spec), layout_(channel_layout(spec.input)), channels_(static_cast<size_t>(spec.input.shape[1])) {
    if (spec.phase == Phase::training && spec.across_ranks == nullptr && layout_.images * layout_.spatial == 1)
      throw_one_value();
    for (auto* values : {&sum_, &m2_, &sum_dy_, &sum_dy_x_}) values->resize(channels_);
    for (auto* values : {&mean_, &scale_, &shift_, &a_, &b_, &c_}) values->resize(channels_);
    if (spec.across_ranks != nullptr) reduced_.resize(std::max(2 * channels_, channels_ + 1));
  }

  // Mean and reciprocal standard deviation of each channel and the values per channel, in double.
  size_t saved_bytes() const override {
    return spec_.phase == Phase::training ? (2 * channels_ + 1) * sizeof(double) : 0;
  }

  void forward(const float* x, const float* weight, const float* bias, float* running_mean, float* running_var,
               float* batches_tracked, float* y, void* saved) override {
    if (spec_.phase == Phase::inference) {
      for (size_t c = 0; c < channels_; ++c) {
        mean_[c] = running_mean[c];
        set_affine(c, static_cast<double>(running_mean[c]),
                   1 / std::sqrt(static_cast<double>(running_var[c]) + spec_.eps), weight, bias);
      }
    } else {
      ChannelStatistics statistics{.count = 0, .mean = sum_, .m2 = m2_};
      compute_statistics(layout_, x, statistics, mean_.data());
      if (spec_.across_ranks != nullptr) {
        sum_over_ranks(*spec_.across_ranks, statistics, reduced_);
        if (statistics.count == 1) throw_one_value();
        for (size_t c = 0; c < channels_; ++c) mean_[c] = static_cast<float>(sum_[c]);
      }
      update_running(statistics, spec_.momentum, running_mean, running_var, batches_tracked);
      auto* saved_mean = static_cast<double*>(saved);
      for (size_t c = 0; c < channels_; ++c) {
        const double rstd = 1 / std::sqrt(m2_[c] / statistics.count + spec_.eps);
        saved_mean[c] = sum_[c];
        saved_mean[channels_ + c] = rstd;
        set_affine(c, sum_[c], rstd, weight, bias);
      }
      saved_mean[2 * channels_] = statistics.count;
    }
    kernels().normalise(layout_, x, mean_.data(), scale_.data(), shift_.data(), y);
  }

  void forward_empty(float* running_mean, float* running_var, float* batches_tracked) override {
    if (spec_.across_ranks == nullptr) return;
    std::ranges::fill(sum_, 0.0);
    std::ranges::fill(m2_, 0.0);
    ChannelStatistics statistics{.count = 0, .mean = sum_, .m2 = m2_};
    sum_over_ranks(*spec_.across_ranks, statistics, reduced_);
    if (statistics.count == 1) throw_one_value();
    if (statistics.count > 0) update_running(statistics, spec_.momentum, running_mean, running_var, batches_tracked);
  }

  void backward_empty() override {
    if (spec_.across_ranks == nullptr) return;
    std::ranges::fill(reduced_, 0.0);
    spec_.across_ranks->sum(std::span(reduced_).first(2 * channels_));
  }

  // With n values per channel (of all ranks, where the statistics are theirs) and xhat = (x - mean) rstd:
  // dx = w rstd (dy - sum(dy) / n - xhat sum(dy xhat) / n), dw = sum(dy xhat), db = sum(dy). The sums in dx are over
  // all ranks too, dw and db over this rank's samples: the ranks' gradients are summed elsewhere.
  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void*) override {
    const auto* saved_mean = static_cast<const double*>(saved);
    const double* rstd = saved_mean + channels_;
    const double count = saved_mean[2 * channels_];
    for (size_t c = 0; c < channels_; ++c) mean_[c] = static_cast<float>(saved_mean[c]);
    kernels().gradient_sums(layout_, x, dy, mean_.data(), sum_dy_.data(), sum_dy_x_.data());
    for (size_t c = 0; c < channels_; ++c) {
      // The kernel subtracts the rounded mean; put the sum back to the exact one.
      const double shift = saved_mean[c] - static_cast<double>(mean_[c]);
      sum_dy_x_[c] -= shift * sum_dy_[c];
      if (dweight != nullptr)
        dweight[c] = (accumulate ? dweight[c] : 0.0F) + static_cast<float>(sum_dy_x_[c] * rstd[c]);
      if (dbias != nullptr) dbias[c] = (accumulate ? dbias[c] : 0.0F) + static_cast<float>(sum_dy_[c]);
    }
    if (spec_.across_ranks != nullptr) sum_gradient_sums();
    if (dx == nullptr) return;
    for (size_t c = 0; c < channels_; ++c) {
      const double shift = saved_mean[c] - static_cast<double>(mean_[c]);
      const double a = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * rstd[c];
      const double b = -a * rstd[c] * rstd[c] * sum_dy_x_[c] / count;
      a_[c] = static_cast<float>(a);
      b_[c] = static_cast<float>(b);
      c_[c] = static_cast<float>(-a * sum_dy_[c] / count - b * shift);
    }
    kernels().gradient(layout_, x, dy, mean_.data(), a_.data(), b_.data(), c_.data(), dx);
  }

 private:
  [[noreturn]] void throw_one_value() const {
    throw_error("Expected more than 1 value per channel when training, found input {}; use a larger batch",
                spec_.input.shape.str());
  }

  void sum_gradient_sums() {
    std::ranges::copy(sum_dy_, reduced_.begin());
    std::ranges::copy(sum_dy_x_, reduced_.begin() + static_cast<std::ptrdiff_t>(channels_));
    const std::span<double> both = std::span(reduced_).first(2 * channels_);
    spec_.across_ranks->sum(both);
    std::ranges::copy(both.first(channels_), sum_dy_.begin());
    std::ranges::copy(both.last(channels_), sum_dy_x_.begin());
  }

  // The kernel subtracts mean_[c], the mean rounded to float; the shift makes up for the rest.
  void set_affine(size_t c, double mean, double rstd, const float* weight, const float* bias) {
    const double scale = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * rstd;
    const double rest = mean - static_cast<double>(mean_[c]);
    scale_[c] = static_cast<float>(scale);
    shift_[c] = static_cast<float>((bias != nullptr ? static_cast<double>(bias[c]) : 0.0) - rest * scale);
  }

  BatchNormSpec spec_;
  ChannelLayout layout_;
  size_t channels_;
  std::vector<double> sum_, m2_, sum_dy_, sum_dy_x_;
  std::vector<double> reduced_;  // what is summed over the ranks
  std::vector<float> mean_, scale_, shift_, a_, b_, c_;
};

}  // namespace

std::unique_ptr<BatchNormPlan> make_cpu_batch_norm(const BatchNormSpec& spec) {
  return std::make_unique<CpuBatchNorm>(spec);
}

}  // namespace lockstep
