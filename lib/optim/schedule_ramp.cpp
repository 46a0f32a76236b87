// Schedules that run over a given number of steps and then stay: ConstantLR, LinearLR, PolynomialLR.
#include <cmath>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {
namespace {

class ConstantRule final : public ScheduleRule {
 public:
  ConstantRule(double base_lr, double factor, int64_t total) : ScheduleRule(base_lr), factor_(factor), total_(total) {}
  double begin(double lr) const override { return lr * factor_; }
  double advance(double lr, int64_t t) const override { return t == total_ ? lr * (1.0 / factor_) : lr; }

 private:
  double factor_;
  int64_t total_;
};

class LinearRule final : public ScheduleRule {
 public:
  LinearRule(double base_lr, double start, double end, int64_t total)
      : ScheduleRule(base_lr), start_(start), end_(end), total_(total) {}
  double begin(double lr) const override { return lr * start_; }
  double advance(double lr, int64_t t) const override {
    if (t > total_) return lr;
    const double slope = end_ - start_;
    return lr * (1.0 + slope / (static_cast<double>(total_) * start_ + static_cast<double>(t - 1) * slope));
  }

 private:
  double start_, end_;
  int64_t total_;
};

class PolynomialRule final : public ScheduleRule {
 public:
  PolynomialRule(double base_lr, int64_t total, double power) : ScheduleRule(base_lr), total_(total), power_(power) {}
  double begin(double lr) const override { return lr; }
  double advance(double lr, int64_t t) const override {
    if (t > total_) return lr;
    const double now = static_cast<double>(t), total = static_cast<double>(total_);
    return lr * std::pow((1.0 - now / total) / (1.0 - (now - 1) / total), power_);
  }

 private:
  int64_t total_;
  double power_;
};

int64_t total_of(const ScheduleSettings& s) {
  const int64_t total = s.total.value_or(5);
  require_positive("total", total);
  return total;
}

}  // namespace

RulePtr build_constant(const ScheduleSettings& s, double base_lr, int64_t) {
  require_above_zero("factor", s.factor);
  require_between("factor", s.factor, 0, 1);
  return std::make_unique<ConstantRule>(base_lr, s.factor, total_of(s));
}

RulePtr build_linear(const ScheduleSettings& s, double base_lr, int64_t) {
  require_above_zero("start_factor", s.start_factor);
  require_between("start_factor", s.start_factor, 0, 1);
  require_between("end_factor", s.end_factor, 0, 1);
  return std::make_unique<LinearRule>(base_lr, s.start_factor, s.end_factor, total_of(s));
}

RulePtr build_polynomial(const ScheduleSettings& s, double base_lr, int64_t) {
  require_above_zero("power", s.power);
  return std::make_unique<PolynomialRule>(base_lr, total_of(s), s.power);
}

}  // namespace lockstep
