// Schedules that multiply by gamma at certain steps: StepLR, MultiStepLR, ExponentialLR; and none.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {
namespace {

class NoRule final : public ScheduleRule {
 public:
  explicit NoRule(double base_lr) : ScheduleRule(base_lr) {}
  double begin(double lr) const override { return lr; }
  double advance(double lr, int64_t) const override { return lr; }
};

class StepRule final : public ScheduleRule {
 public:
  StepRule(double base_lr, int64_t size, double gamma) : ScheduleRule(base_lr), size_(size), gamma_(gamma) {}
  double begin(double lr) const override { return lr; }
  double advance(double lr, int64_t t) const override { return t % size_ == 0 ? lr * gamma_ : lr; }

 private:
  int64_t size_;
  double gamma_;
};

class MultiStepRule final : public ScheduleRule {
 public:
  MultiStepRule(double base_lr, std::vector<int64_t> milestones, double gamma)
      : ScheduleRule(base_lr), milestones_(std::move(milestones)), gamma_(gamma) {
    std::sort(milestones_.begin(), milestones_.end());
  }
  double begin(double lr) const override { return at(lr, 0); }
  double closed_begin() const override { return at(base(), 0); }
  double advance(double lr, int64_t t) const override { return at(lr, t); }

 private:
  double at(double lr, int64_t t) const {
    const auto [first, last] = std::equal_range(milestones_.begin(), milestones_.end(), t);
    return first == last ? lr : lr * std::pow(gamma_, static_cast<double>(last - first));
  }
  std::vector<int64_t> milestones_;
  double gamma_;
};

}  // namespace

RulePtr build_none(const ScheduleSettings&, double base_lr, int64_t) { return std::make_unique<NoRule>(base_lr); }

RulePtr build_step(const ScheduleSettings& s, double base_lr, int64_t) {
  require_positive("step_size", s.step_size);
  require_above_zero("gamma", s.gamma);
  return std::make_unique<StepRule>(base_lr, s.step_size, s.gamma);
}

RulePtr build_multi_step(const ScheduleSettings& s, double base_lr, int64_t) {
  if (s.milestones.empty()) throw_error("schedule.milestones: multi_step needs at least one");
  for (const int64_t milestone : s.milestones)
    if (milestone < 0) throw_error("schedule.milestones: expected numbers from 0, found {}", milestone);
  require_above_zero("gamma", s.gamma);
  return std::make_unique<MultiStepRule>(base_lr, s.milestones, s.gamma);
}

RulePtr build_exponential(const ScheduleSettings& s, double base_lr, int64_t) {
  require_above_zero("gamma", s.gamma);
  return std::make_unique<StepRule>(base_lr, 1, s.gamma);
}

}  // namespace lockstep
