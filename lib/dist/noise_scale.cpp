#include "dist/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/sum_tree.h"

namespace lockstep {

constexpr double kDecay = 0.9;  // of the moving averages; the first steps are averaged evenly

NoiseScale::NoiseScale(Communicator& communicator, const OptimizerOps& ops, int64_t windows)
    : communicator_(communicator), ops_(ops) {
  windows_.reserve(static_cast<size_t>(windows));
}

void NoiseScale::begin_step(bool measured) {
  measured_step_ = measured;
  own_square_ = 0;
  windows_.clear();
}

void NoiseScale::before_sum(const Bucket& /*bucket*/, std::span<const float> gradients) {
  if (measured_step_) own_square_ += ops_.sum_of_squares(gradients.size(), gradients.data());
}

void NoiseScale::end_window(int64_t own_samples) {
  if (measured_step_) windows_.push_back({own_square_, own_samples});
  own_square_ = 0;
}

void NoiseScale::end_step(std::span<const float> gradients, int64_t samples, bool divided, double scale) {
  if (!measured_step_) return;
  const double divisor = (divided ? static_cast<double>(samples) : 1) / scale, square = divisor * divisor;
  estimate(square, ops_.sum_of_squares(gradients.size(), gradients.data()) * square, samples);
}

const NoiseEstimate& NoiseScale::add(double own_square, int64_t own_samples, double square, int64_t samples) {
  windows_.assign(1, {own_square, own_samples});
  return estimate(1, square, samples);
}

State NoiseScale::state() const {
  State state;
  state.set("trace", trace_);
  state.set("gradient_square", gradient_square_);
  state.set("noise_scale", last_.noise_scale);
  state.set("measured", measured_);
  return state;
}

void NoiseScale::restore(const State& state) {
  trace_ = state.real("trace");
  gradient_square_ = state.real("gradient_square");
  last_.noise_scale = state.real("noise_scale");
  measured_ = state.integer("measured");
}

// In the tree's order, for equal bits whatever ranks stand for how many virtual ones.
double NoiseScale::sum_of_windows(double (*term)(const Window&)) {
  return tree_sum(static_cast<int>(windows_.size()), [&](int i) {
    const Window& w = windows_[static_cast<size_t>(i)];
    return w.samples > 0 ? term(w) : 0.0;
  });
}

const NoiseEstimate& NoiseScale::estimate(double own_factor, double square, int64_t samples) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto all = static_cast<double>(samples);
  double sums[3] = {// |g_r|^2, 1 / b_r, ranks with samples
                    own_factor * sum_of_windows([](const Window& w) {
                      return w.square / (static_cast<double>(w.samples) * static_cast<double>(w.samples));
                    }),
                    sum_of_windows([](const Window& w) { return 1 / static_cast<double>(w.samples); }),
                    sum_of_windows([](const Window&) { return 1.0; })};
  communicator_.all_reduce(sums, ReduceOp::sum);
  if (sums[2] < 2) return last_ = {kNone, kNone, measured_ == 0 ? kNone : last_.noise_scale};

  const double mean = square / (all * all);
  last_.trace = (sums[0] / sums[2] - mean) / (sums[1] / sums[2] - 1 / all);
  last_.gradient_square = mean - last_.trace / all;
  if (!std::isfinite(last_.trace) || !std::isfinite(last_.gradient_square))
    return last_;  // sums[0] and square tell all
  ++measured_;
  const double weight = std::max(1 - kDecay, 1 / static_cast<double>(measured_));
  trace_ += weight * (last_.trace - trace_);
  gradient_square_ += weight * (last_.gradient_square - gradient_square_);
  last_.noise_scale = gradient_square_ > 0 ? trace_ / gradient_square_ : kNone;
  return last_;
}

}  // namespace lockstep
