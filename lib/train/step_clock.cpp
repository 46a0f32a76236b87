#include "train/step_clock.h"

#include <algorithm>

namespace lockstep {

void StepClock::trace_lap(StepPhase phase) {
  const int64_t now = trace_now();
  trace_->add({.name = kStepPhases[static_cast<size_t>(phase)], .begin = last_traced_, .end = now, .values = {}});
  last_traced_ = now;
}

void StepClock::append_to(std::vector<double>& sums, int rank, int world_size) const {
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
