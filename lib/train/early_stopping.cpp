#include "train/early_stopping.h"

#include <cmath>

#include "train/metrics/table.h"

namespace lockstep {

EarlyStopping::EarlyStopping(const EarlyStoppingConfig& config)
    : larger_is_better_(config.mode ? *config.mode == "max" : larger_is_better(config.metric)),
      min_delta_(config.min_delta),
      patience_(config.patience),
      best_{.metric = config.metric} {}

bool EarlyStopping::observe(double value, int64_t step) {
  const double gain = larger_is_better_ ? value - best_.value : best_.value - value;
  const bool first = best_.step < 0 && !std::isnan(value);
  if (first || gain > min_delta_) {
    best_.value = value;
    best_.step = step;
    without_progress_ = 0;
    return false;
  }
  return ++without_progress_ >= patience_;
}

}  // namespace lockstep
