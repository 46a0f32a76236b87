#include "train/settings/lr_find.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/svg_chart.h"

namespace lockstep {
namespace {

constexpr double kWeight = 0.98, kDiverged = 4;
constexpr size_t kFirst = 5;  // smoothed values before it are of too few losses

size_t least(const std::vector<double>& values) {
  return static_cast<size_t>(std::ranges::min_element(values) - values.begin());
}

}  // namespace

Config lr_find_config(Config config, const LrRange& range, const std::string& dir) {
  if (!(range.from > 0 && range.from < range.to))
    throw_error("expected rates above 0 and growing, found {} to {}", range.from, range.to);
  if (range.steps < 20) throw_error("expected at least 20 steps, found {}", range.steps);
  config.run.dir = dir;
  config.optimizer.lr = range.from;
  config.schedule = ScheduleConfig{};
  config.schedule.kind = "exponential";
  config.schedule.per = "step";
  config.schedule.gamma = std::pow(range.to / range.from, 1 / static_cast<double>(range.steps - 1));
  config.train.max_steps = range.steps;
  config.train.epochs = range.steps;  // an epoch has a step at least
  config.train.early_stopping.reset();
  config.train.on_nonfinite = "skip";
  config.distributed.sharded_update = "auto";  // which skipping excludes
  config.eval.every = {Period::Kind::never, 0};
  config.checkpoint.every = {Period::Kind::never, 0};
  config.log.every = 1;
  config.log.trace.clear();
  return config;
}

LrCurve lr_curve(std::vector<double> rate, std::vector<double> loss) {
  LrCurve curve{.rate = std::move(rate), .loss = std::move(loss)};
  double mean = 0, weight = 1;
  for (const double value : curve.loss) {
    if (!std::isfinite(value)) break;
    mean = kWeight * mean + (1 - kWeight) * value;
    weight *= kWeight;
    curve.smoothed.push_back(mean / (1 - weight));
    if (curve.smoothed.back() > kDiverged * *std::ranges::min_element(curve.smoothed)) break;
  }
  return curve;
}

LrChoice choose_rate(const LrCurve& curve) {
  const size_t minimum = curve.smoothed.empty() ? 0 : least(curve.smoothed);
  if (minimum <= kFirst)
    throw_error(
        "the loss does not fall at any rate from {:g} on: begin with a smaller one (--from), or look at model and data",
        curve.rate.empty() ? 0 : curve.rate.front());
  size_t steepest = kFirst;
  double slope = 0;
  for (size_t i = kFirst; i < minimum; ++i) {
    const double here =
        (curve.smoothed[i + 1] - curve.smoothed[i - 1]) / std::log(curve.rate[i + 1] / curve.rate[i - 1]);
    if (here < slope) slope = here, steepest = i;
  }
  LrChoice choice{.steepest = curve.rate[steepest], .minimum = curve.rate[minimum]};
  choice.chosen = std::min(choice.steepest, choice.minimum / 10);
  return choice;
}

std::string lr_find_svg(const LrCurve& curve, const LrChoice& choice) {
  Curve losses{.label = "loss"}, smoothed{.label = "smoothed"},
      chosen{.label = fmt::format("chosen: {:.2g}", choice.chosen)};
  const double low = *std::ranges::min_element(curve.smoothed), high = *std::ranges::max_element(curve.smoothed);
  for (size_t i = 0; i < curve.smoothed.size(); ++i) {
    losses.points.emplace_back(std::log10(curve.rate[i]),
                               std::clamp(curve.loss[i], low - (high - low), high + (high - low)));
    smoothed.points.emplace_back(std::log10(curve.rate[i]), curve.smoothed[i]);
  }
  const double at = std::log10(choice.chosen);
  chosen.points = {{at, low}, {at, high}};
  return svg_chart("Learning-rate range test", {{.title = "loss while the rate grows",
                                                 .x_label = "log10 of the learning rate",
                                                 .y_label = "training loss",
                                                 .curves = {losses, smoothed, chosen}}});
}

}  // namespace lockstep
