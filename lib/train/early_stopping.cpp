#include "train/early_stopping.h"

#include <cmath>

#include "train/metrics/table.h"

namespace lockstep {

EarlyStopping::EarlyStopping(const EarlyStoppingConfig& config)
    : larger_is_better_(config.mode ? *config.mode == "max" : larger_is_better(config.metric)),
      min_delta_(config.min_delta),
      patience_(config.patience) {}

bool EarlyStopping::observe(double value) {
  const double gain = larger_is_better_ ? value - to_beat_ : to_beat_ - value;
  const bool first = std::isnan(to_beat_) && !std::isnan(value);
  if (first || gain > min_delta_) {
    to_beat_ = value;
    without_progress_ = 0;
    return false;
  }
  return ++without_progress_ >= patience_;
}

State EarlyStopping::state() const {
  State state;
  state.set("to_beat", to_beat_);
  state.set("without_progress", without_progress_);
  return state;
}

void EarlyStopping::restore(const State& state) {
  to_beat_ = state.real("to_beat");
  without_progress_ = state.integer("without_progress");
}

}  // namespace lockstep
