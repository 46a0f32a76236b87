// OneCycleLR: up to max_lr, down to almost nothing, and the momentum the other way.
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {
namespace {

class OneCycleRule final : public ScheduleRule {
 public:
  OneCycleRule(const ScheduleSettings& s, double base_lr, int64_t total)
      : ScheduleRule(base_lr), total_(total), cosine_(s.anneal == "cos"), cycle_momentum_(s.cycle_momentum) {
    const double n = static_cast<double>(total), initial = s.max_lr / s.div_factor;
    const double low = initial / s.final_div_factor, max = s.max_lr;
    const double slow = s.base_momentum, fast = s.max_momentum;
    phases_.push_back({s.pct_start * n - 1, initial, max, fast, slow});
    if (s.three_phase) {
      phases_.push_back({2 * s.pct_start * n - 2, max, initial, slow, fast});
      phases_.push_back({n - 1, initial, low, fast, fast});
    } else {
      phases_.push_back({n - 1, max, low, slow, fast});
    }
  }

  double begin(double) const override { return lr_at(0); }
  double advance(double, int64_t t) const override { return lr_at(t); }
  std::optional<double> momentum(int64_t t) const override {
    if (!cycle_momentum_) return {};
    const Position position = locate(t);
    return anneal(position.phase.momentum_from, position.phase.momentum_to, position.fraction);
  }

 private:
  struct Phase {
    double end, lr_from, lr_to, momentum_from, momentum_to;
  };
  struct Position {
    const Phase& phase;
    double fraction;
  };

  double lr_at(int64_t t) const {
    const Position position = locate(t);
    return anneal(position.phase.lr_from, position.phase.lr_to, position.fraction);
  }

  Position locate(int64_t t) const {
    if (t >= total_)
      throw_error("schedule.total: one_cycle ends after {} steps, there is no learning rate for step {}", total_, t);
    const double now = static_cast<double>(t);
    double start = 0;
    size_t i = 0;
    for (; i + 1 < phases_.size() && now > phases_[i].end; ++i) start = phases_[i].end;
    const double length = phases_[i].end - start;
    return {phases_[i], length == 0 ? 1.0 : (now - start) / length};  // a phase without length is at its end
  }

  double anneal(double from, double to, double fraction) const {
    if (cosine_) return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * fraction) + 1);
    return (to - from) * fraction + from;
  }

  int64_t total_;
  bool cosine_, cycle_momentum_;
  std::vector<Phase> phases_;
};

}  // namespace

RulePtr build_one_cycle(const ScheduleSettings& s, double base_lr, int64_t length) {
  if (!s.total && length <= 0) throw_error("schedule.total: one_cycle needs it, the run's length is not known here");
  const int64_t total = s.total.value_or(length);
  require_positive("total", total);
  if (total < length)
    throw_error("schedule.total: one_cycle would end after {} steps, the run has {} for it", total, length);
  require_above_zero("max_lr", s.max_lr);
  require_above_zero("div_factor", s.div_factor);
  require_above_zero("final_div_factor", s.final_div_factor);
  require_between("pct_start", s.pct_start, 0, s.three_phase ? 0.5 : 1);
  if (s.anneal != "cos" && s.anneal != "linear")
    throw_error("schedule.anneal: expected cos or linear, found '{}'", s.anneal);
  if (!(s.base_momentum >= 0 && s.base_momentum < 1 && s.max_momentum >= 0 && s.max_momentum < 1))
    throw_error("schedule.base_momentum, max_momentum: expected numbers in [0, 1), found {} and {}", s.base_momentum,
                s.max_momentum);
  return std::make_unique<OneCycleRule>(s, base_lr, total);
}

}  // namespace lockstep
