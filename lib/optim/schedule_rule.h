// One schedule's step as PyTorch takes it: from the current lr and its own count t to the next lr. A rule holds
// settings only (plateau aside), so that sequences and chains can run several on the same lr.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optim/schedule.h"

namespace lockstep {

class PlateauRule;

class ScheduleRule {
 public:
  virtual ~ScheduleRule() = default;
  // t = 0, from the optimizer's current lr: what the constructor of a PyTorch scheduler does.
  virtual double begin(double lr) const = 0;
  // t = 0 inside a sequence, where PyTorch uses the closed form, whatever the current lr is.
  virtual double closed_begin() const { return begin(base_); }
  virtual double advance(double lr, int64_t t) const = 0;  // t >= 1
  virtual std::optional<double> momentum(int64_t) const { return {}; }
  virtual PlateauRule* plateau() { return nullptr; }

 protected:
  explicit ScheduleRule(double base_lr) : base_(base_lr) {}
  double base() const { return base_; }

 private:
  double base_;
};

using RulePtr = std::unique_ptr<ScheduleRule>;

// lr lowered when a metric stops improving; the only rule with a memory.
class PlateauRule final : public ScheduleRule {
 public:
  PlateauRule(const ScheduleSettings& settings, double base_lr);
  double begin(double) const override { return state_.lr; }
  double advance(double, int64_t) const override { return state_.lr; }
  PlateauRule* plateau() override { return this; }
  void report(double metric);
  const PlateauState& state() const { return state_; }
  void restore(const PlateauState& state);

 private:
  bool better(double metric) const;
  bool maximize_, relative_;
  double factor_, threshold_, min_lr_, eps_;
  int64_t patience_, cooldown_;
  PlateauState state_;
};

// Builders of the factory's table, one file per family. `length`: how many t the rule is to serve, 0 if unknown.
RulePtr build_none(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_step(const ScheduleSettings& settings, double base_lr, int64_t length);  // schedule_step.cpp
RulePtr build_multi_step(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_exponential(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_constant(const ScheduleSettings& settings, double base_lr, int64_t length);  // schedule_ramp.cpp
RulePtr build_linear(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_polynomial(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_cosine(const ScheduleSettings& settings, double base_lr, int64_t length);  // schedule_cosine.cpp
RulePtr build_cosine_warm_restarts(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_one_cycle(const ScheduleSettings& settings, double base_lr, int64_t length);  // schedule_one_cycle.cpp
RulePtr build_plateau(const ScheduleSettings& settings, double base_lr, int64_t length);    // schedule_plateau.cpp
RulePtr build_sequence(const ScheduleSettings& settings, double base_lr, int64_t length);   // schedule_sequence.cpp
RulePtr build_chained(const ScheduleSettings& settings, double base_lr, int64_t length);
RulePtr build_warmup(int64_t steps, double start_factor, double base_lr, RulePtr main);  // schedule_sequence.cpp

// Any settings as a rule, warm-up included.
RulePtr build_rule(const ScheduleSettings& settings, double base_lr, int64_t length);

// Throw Error "schedule.KEY: expected ..., found ...".
void require_positive(const char* key, int64_t value);
void require_between(const char* key, double value, double low, double high);  // inclusive
void require_above_zero(const char* key, double value);                        // finite, > 0

}  // namespace lockstep
