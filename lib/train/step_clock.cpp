#include "train/step_clock.h"

#include <algorithm>

namespace lockstep {

void StepClock::trace_lap(std::string_view name) {
  const int64_t now = trace_now();
  trace_->add({.name = name, .begin = last_traced_, .end = now, .values = {}});
  last_traced_ = now;
}

void StepClock::read() {
  settle_();
  for (size_t lap = 0; lap < laps_.size(); ++lap)
    seconds_[static_cast<size_t>(laps_[lap])] += watch_->seconds(lap, lap + 1);
  laps_.clear();
}

void StepClock::append_to(std::vector<double>& sums, int rank, int world_size) {
  read();
  const size_t first = sums.size();
  sums.resize(first + kStepPhases.size() * static_cast<size_t>(world_size));
  std::ranges::copy(seconds_, sums.begin() + static_cast<std::ptrdiff_t>(first) +
                                  rank * static_cast<std::ptrdiff_t>(kStepPhases.size()));
}

TimeSplit StepClock::take_from(std::span<const double> sums, int world_size) {
  TimeSplit split{.steps = steps_, .ranks = {}};
  split.ranks.resize(static_cast<size_t>(world_size));
  std::span<const double> laps = sums.last(kStepPhases.size() * static_cast<size_t>(world_size));
  for (auto& rank : split.ranks) {
    std::ranges::copy(laps.first(kStepPhases.size()), rank.begin());
    laps = laps.subspan(kStepPhases.size());
  }
  steps_ = 0;
  seconds_ = {};
  return split;
}

}  // namespace lockstep
