#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/names.h"
#include "optim/schedule_rule.h"

namespace lockstep {

Schedule::Schedule(std::unique_ptr<ScheduleRule> rule, double base_lr)
    : rule_(std::move(rule)), plateau_(rule_->plateau()), base_lr_(base_lr) {}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

double Schedule::lr(int64_t t) {
  if (t < 0) throw_error("schedule: expected a step from 0, found {}", t);
  if (t_ < 0 || t < t_) {
    lr_ = rule_->begin(base_lr_);
    t_ = 0;
  }
  while (t_ < t) {
    lr_ = rule_->advance(lr_, t_ + 1);
    ++t_;
  }
  return lr_;
}

std::optional<double> Schedule::momentum(int64_t t) const { return rule_->momentum(t); }

void Schedule::report(double metric) {
  if (plateau_ == nullptr) throw_error("schedule: only kind plateau takes a metric");
  plateau_->report(metric);
  t_ = -1;
}

PlateauState Schedule::plateau_state() const {
  if (plateau_ == nullptr) throw_error("schedule: only kind plateau has a state");
  return plateau_->state();
}

void Schedule::set_plateau_state(const PlateauState& state) {
  if (plateau_ == nullptr) throw_error("schedule: only kind plateau has a state");
  plateau_->restore(state);
  t_ = -1;
}

void require_positive(const char* key, int64_t value) {
  if (value < 1) throw_error("schedule.{}: expected a number from 1, found {}", key, value);
}

void require_between(const char* key, double value, double low, double high) {
  if (!(value >= low && value <= high))
    throw_error("schedule.{}: expected a number in [{}, {}], found {}", key, low, high, value);
}

void require_above_zero(const char* key, double value) {
  if (!(value > 0) || std::isinf(value)) throw_error("schedule.{}: expected a number above 0, found {}", key, value);
}

namespace {

struct Kind {
  std::string name;
  RulePtr (*build)(const ScheduleSettings&, double base_lr, int64_t length);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = {
      {"none", build_none},
      {"step", build_step},
      {"multi_step", build_multi_step},
      {"exponential", build_exponential},
      {"constant", build_constant},
      {"linear", build_linear},
      {"polynomial", build_polynomial},
      {"cosine", build_cosine},
      {"cosine_warm_restarts", build_cosine_warm_restarts},
      {"one_cycle", build_one_cycle},
      {"plateau", build_plateau},
      {"sequence", build_sequence},
      {"chained", build_chained},
  };
  return table;
}

}  // namespace

std::vector<std::string> schedule_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

RulePtr build_rule(const ScheduleSettings& settings, double base_lr, int64_t length) {
  if (settings.warmup < 0) throw_error("schedule.warmup: expected a number from 0, found {}", settings.warmup);
  for (const Kind& kind : kinds()) {
    if (kind.name != settings.kind) continue;
    if (settings.warmup == 0) return kind.build(settings, base_lr, length);
    // A run that is shorter than its warm-up (a trial run) leaves the schedule itself one step it never takes.
    const int64_t rest = length > 0 ? std::max<int64_t>(length - settings.warmup, 1) : 0;
    return build_warmup(settings.warmup, settings.warmup_start_factor, base_lr, kind.build(settings, base_lr, rest));
  }
  throw_unknown_name("schedule.kind", settings.kind, schedule_kinds());
}

Schedule make_schedule(const ScheduleSettings& settings, double base_lr, int64_t run_length) {
  if (!(base_lr >= 0) || std::isinf(base_lr)) throw_error("optimizer.lr: expected a number from 0, found {}", base_lr);
  if (run_length < 0) throw_error("schedule: expected a run of 0 or more steps, found {}", run_length);
  return Schedule(build_rule(settings, base_lr, run_length), base_lr);
}

}  // namespace lockstep
