// ReduceLROnPlateau: a lower rate once the metric has not improved for more than `patience` reports.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {

PlateauRule::PlateauRule(const ScheduleSettings& s, double base_lr)
    : ScheduleRule(base_lr),
      maximize_(s.mode == "max"),
      relative_(s.threshold_mode == "rel"),
      factor_(s.factor),
      threshold_(s.threshold),
      min_lr_(s.min_lr),
      eps_(s.plateau_eps),
      patience_(s.patience),
      cooldown_(s.cooldown) {
  state_.lr = base_lr;
  state_.best = maximize_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

// False for a NaN, which therefore counts as no improvement.
bool PlateauRule::better(double metric) const {
  if (maximize_) return metric > (relative_ ? state_.best * (threshold_ + 1.0) : state_.best + threshold_);
  return metric < (relative_ ? state_.best * (1.0 - threshold_) : state_.best - threshold_);
}

void PlateauRule::report(double metric) {
  if (better(metric)) {
    state_.best = metric;
    state_.bad = 0;
  } else {
    ++state_.bad;
  }
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.bad = 0;
  }
  if (state_.bad <= patience_) return;
  const double lower = std::max(state_.lr * factor_, min_lr_);
  if (state_.lr - lower > eps_) state_.lr = lower;
  state_.cooldown = cooldown_;
  state_.bad = 0;
}

void PlateauRule::restore(const PlateauState& state) {
  if (!(state.lr >= 0) || std::isinf(state.lr) || state.bad < 0 || state.cooldown < 0)
    throw_error("schedule: a plateau state needs lr, bad and cooldown from 0, found {}, {} and {}", state.lr, state.bad,
                state.cooldown);
  state_ = state;
}

RulePtr build_plateau(const ScheduleSettings& s, double base_lr, int64_t) {
  if (s.mode != "min" && s.mode != "max") throw_error("schedule.mode: expected min or max, found '{}'", s.mode);
  if (s.threshold_mode != "rel" && s.threshold_mode != "abs")
    throw_error("schedule.threshold_mode: expected rel or abs, found '{}'", s.threshold_mode);
  if (!(s.factor > 0 && s.factor < 1)) throw_error("schedule.factor: plateau needs one in (0, 1), found {}", s.factor);
  if (s.patience < 0) throw_error("schedule.patience: expected a number from 0, found {}", s.patience);
  if (s.cooldown < 0) throw_error("schedule.cooldown: expected a number from 0, found {}", s.cooldown);
  const double max = std::numeric_limits<double>::max();
  require_between("threshold", s.threshold, 0, max);
  require_between("min_lr", s.min_lr, 0, max);
  require_between("plateau_eps", s.plateau_eps, 0, max);
  return std::make_unique<PlateauRule>(s, base_lr);
}

}  // namespace lockstep
