// CosineAnnealingLR (the recursive form: it rises again after t_max) and CosineAnnealingWarmRestarts.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {
namespace {

constexpr double kPi = std::numbers::pi;

double cosine(double eta_min, double base_lr, int64_t t, int64_t period) {
  return eta_min + (base_lr - eta_min) * (1 + std::cos(kPi * static_cast<double>(t) / static_cast<double>(period))) / 2;
}

class CosineRule final : public ScheduleRule {
 public:
  CosineRule(double base_lr, int64_t t_max, double eta_min) : ScheduleRule(base_lr), t_max_(t_max), eta_min_(eta_min) {}
  double begin(double lr) const override { return lr; }
  double closed_begin() const override { return cosine(eta_min_, base(), 0, t_max_); }
  double advance(double lr, int64_t t) const override {
    const double period = static_cast<double>(t_max_);
    if ((t - 1 - t_max_) % (2 * t_max_) == 0) return lr + (base() - eta_min_) * (1 - std::cos(kPi / period)) / 2;
    return (1 + std::cos(kPi * static_cast<double>(t) / period)) /
               (1 + std::cos(kPi * static_cast<double>(t - 1) / period)) * (lr - eta_min_) +
           eta_min_;
  }

 private:
  int64_t t_max_;
  double eta_min_;
};

class WarmRestartRule final : public ScheduleRule {
 public:
  WarmRestartRule(double base_lr, int64_t t_0, int64_t t_mult, double eta_min)
      : ScheduleRule(base_lr), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {}
  double begin(double) const override { return at(0); }
  double advance(double, int64_t t) const override { return at(t); }

 private:
  double at(int64_t t) const {
    int64_t cycle = t_0_;
    if (t_mult_ == 1) t %= t_0_;
    while (t >= cycle) {
      t -= cycle;
      if (__builtin_mul_overflow(cycle, t_mult_, &cycle)) cycle = std::numeric_limits<int64_t>::max();
    }
    return cosine(eta_min_, base(), t, cycle);
  }

  int64_t t_0_, t_mult_;
  double eta_min_;
};

}  // namespace

RulePtr build_cosine(const ScheduleSettings& s, double base_lr, int64_t length) {
  if (!s.t_max && length <= 0) throw_error("schedule.t_max: cosine needs it, the run's length is not known here");
  const int64_t t_max = s.t_max.value_or(length);
  require_positive("t_max", t_max);
  require_between("eta_min", s.eta_min, 0, std::numeric_limits<double>::max());
  if (t_max > std::numeric_limits<int64_t>::max() / 4) throw_error("schedule.t_max: {} is too large", t_max);
  return std::make_unique<CosineRule>(base_lr, t_max, s.eta_min);
}

RulePtr build_cosine_warm_restarts(const ScheduleSettings& s, double base_lr, int64_t) {
  require_positive("t_0", s.t_0);
  require_positive("t_mult", s.t_mult);
  require_between("eta_min", s.eta_min, 0, std::numeric_limits<double>::max());
  return std::make_unique<WarmRestartRule>(base_lr, s.t_0, s.t_mult, s.eta_min);
}

}  // namespace lockstep
