// Schedules made of others: one after the other (SequentialLR), all at once (ChainedScheduler), and warm-up.
#include <algorithm>

#include "core/error.h"
#include "optim/schedule_rule.h"

namespace lockstep {
namespace {

class SequenceRule final : public ScheduleRule {
 public:
  SequenceRule(double base_lr, std::vector<RulePtr> rules, std::vector<int64_t> milestones)
      : ScheduleRule(base_lr), rules_(std::move(rules)), milestones_(std::move(milestones)) {}

  double begin(double lr) const override { return rules_[0]->begin(lr); }
  double closed_begin() const override { return rules_[0]->closed_begin(); }
  double advance(double lr, int64_t t) const override {
    const size_t active = active_at(t);
    const int64_t own = t - start_of(active);
    return own == 0 ? rules_[active]->closed_begin() : rules_[active]->advance(lr, own);
  }

  // Before a cycle begins its first momentum holds already (PyTorch sets it at construction), afterwards its last.
  std::optional<double> momentum(int64_t t) const override {
    const size_t active = active_at(t);
    if (const auto own = rules_[active]->momentum(t - start_of(active))) return own;
    for (size_t i = active + 1; i < rules_.size(); ++i)
      if (const auto next = rules_[i]->momentum(0)) return next;
    for (size_t i = active; i-- > 0;)
      if (const auto last = rules_[i]->momentum(milestones_[i] - 1 - start_of(i))) return last;
    return {};
  }

  PlateauRule* plateau() override { return rules_.back()->plateau(); }

 private:
  size_t active_at(int64_t t) const {
    return static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), t) - milestones_.begin());
  }
  int64_t start_of(size_t index) const { return index == 0 ? 0 : milestones_[index - 1]; }

  std::vector<RulePtr> rules_;
  std::vector<int64_t> milestones_;
};

class ChainedRule final : public ScheduleRule {
 public:
  ChainedRule(double base_lr, std::vector<RulePtr> rules) : ScheduleRule(base_lr), rules_(std::move(rules)) {}
  double begin(double lr) const override {
    for (const RulePtr& rule : rules_) lr = rule->begin(lr);
    return lr;
  }
  double advance(double lr, int64_t t) const override {
    for (const RulePtr& rule : rules_) lr = rule->advance(lr, t);
    return lr;
  }
  std::optional<double> momentum(int64_t t) const override {
    std::optional<double> momentum;
    for (const RulePtr& rule : rules_)
      if (const auto own = rule->momentum(t)) momentum = own;
    return momentum;
  }

 private:
  std::vector<RulePtr> rules_;
};

// base / n, 2 base / n, ..., base.
class WarmupRule final : public ScheduleRule {
 public:
  WarmupRule(double base_lr, int64_t steps) : ScheduleRule(base_lr), steps_(steps) {}
  double begin(double) const override { return at(0); }
  double advance(double, int64_t t) const override { return at(t); }

 private:
  double at(int64_t t) const { return base() * static_cast<double>(t + 1) / static_cast<double>(steps_); }
  int64_t steps_;
};

// Plateau keeps its own rate: it may end a warm-up or a sequence, but not share the rate with others.
RulePtr build_child(const ScheduleSettings& parent, size_t index, bool may_be_plateau, double base_lr, int64_t length) {
  RulePtr rule = build_rule(parent.schedules[index], base_lr, length);
  if (!may_be_plateau && rule->plateau() != nullptr)
    throw_error("schedule.schedules[{}]: plateau can only be the last of a sequence", index);
  return rule;
}

}  // namespace

RulePtr build_sequence(const ScheduleSettings& s, double base_lr, int64_t length) {
  if (s.schedules.empty()) throw_error("schedule.schedules: a sequence needs at least one");
  if (s.milestones.size() + 1 != s.schedules.size())
    throw_error("schedule.milestones: expected {}, one fewer than schedules, found {}", s.schedules.size() - 1,
                s.milestones.size());
  std::vector<RulePtr> rules;
  int64_t start = 0;
  for (size_t i = 0; i < s.schedules.size(); ++i) {
    const bool last = i + 1 == s.schedules.size();
    const int64_t end = last ? std::max(length, start) : s.milestones[i];
    if (!last && end <= start) throw_error("schedule.milestones: expected ascending numbers from 1, found {}", end);
    rules.push_back(build_child(s, i, last, base_lr, end - start));
    start = end;
  }
  return std::make_unique<SequenceRule>(base_lr, std::move(rules), s.milestones);
}

RulePtr build_chained(const ScheduleSettings& s, double base_lr, int64_t length) {
  if (s.schedules.empty()) throw_error("schedule.schedules: chained needs at least one");
  std::vector<RulePtr> rules;
  for (size_t i = 0; i < s.schedules.size(); ++i) rules.push_back(build_child(s, i, false, base_lr, length));
  return std::make_unique<ChainedRule>(base_lr, std::move(rules));
}

RulePtr build_warmup(int64_t steps, double start_factor, double base_lr, RulePtr main) {
  std::vector<RulePtr> rules;
  if (start_factor == 0) {
    rules.push_back(std::make_unique<WarmupRule>(base_lr, steps));
  } else {
    ScheduleSettings linear;
    linear.kind = "linear";
    linear.start_factor = start_factor;
    linear.end_factor = 1;
    linear.total = steps;
    require_between("warmup_start_factor", start_factor, 0, 1);
    rules.push_back(build_linear(linear, base_lr, steps));
  }
  rules.push_back(std::move(main));
  return std::make_unique<SequenceRule>(base_lr, std::move(rules), std::vector<int64_t>{steps});
}

}  // namespace lockstep
