#include "train/learning_rate.h"

#include <optional>

namespace lockstep {
namespace {

ScheduleSettings schedule_settings(const ScheduleConfig& c) {
  ScheduleSettings s{.kind = c.kind,
                     .step_size = c.step_size,
                     .milestones = c.milestones,
                     .gamma = c.gamma,
                     .factor = c.factor,
                     .start_factor = c.start_factor,
                     .end_factor = c.end_factor,
                     .total = c.total,
                     .power = c.power,
                     .t_max = c.t_max,
                     .eta_min = c.eta_min,
                     .warmup = c.warmup,
                     .warmup_start_factor = c.warmup_start_factor,
                     .max_lr = c.max_lr,
                     .pct_start = c.pct_start,
                     .div_factor = c.div_factor,
                     .final_div_factor = c.final_div_factor,
                     .anneal = c.anneal,
                     .three_phase = c.three_phase,
                     .cycle_momentum = c.cycle_momentum,
                     .base_momentum = c.base_momentum,
                     .max_momentum = c.max_momentum,
                     .mode = c.mode,
                     .threshold_mode = c.threshold_mode,
                     .patience = c.patience,
                     .cooldown = c.cooldown,
                     .threshold = c.threshold,
                     .min_lr = c.min_lr,
                     .plateau_eps = c.plateau_eps};
  for (const ScheduleConfig& inner : c.schedules) s.schedules.push_back(schedule_settings(inner));
  return s;
}

}  // namespace

LearningRate::LearningRate(const ScheduleConfig& config, const Optimizer& optimizer, int64_t epochs,
                           int64_t total_steps)
    : per_epoch_(config.per == "epoch"), metric_(config.metric) {
  const int64_t length = per_epoch_ ? epochs : total_steps;
  for (int group = 0; group < optimizer.groups(); ++group)
    schedules_.push_back(make_schedule(schedule_settings(config), optimizer.lr(group), length));
}

void LearningRate::apply(Optimizer& optimizer, int64_t step, int64_t epoch) {
  const int64_t t = per_epoch_ ? epoch : step;
  if (t == applied_) return;
  for (int group = 0; group < optimizer.groups(); ++group) {
    Schedule& schedule = schedules_[static_cast<size_t>(group)];
    const double lr = schedule.lr(t);
    optimizer.set_lr(group, lr);
    if (const std::optional<double> momentum = schedule.momentum(t)) optimizer.set_momentum(group, *momentum);
    if (group == 0) last_ = lr;
  }
  applied_ = t;
}

void LearningRate::observe_validation(const Metrics& metrics) {
  if (!metric_.starts_with("val.")) return;
  if (const std::optional<double> value = metrics.number(metric_.substr(4))) report(*value);
}

void LearningRate::observe_epoch(double train_loss) {
  if (metric_ == "train.loss") report(train_loss);
}

State LearningRate::state() const {
  State state;
  for (size_t group = 0; group < schedules_.size() && schedules_[group].wants_metric(); ++group) {
    const PlateauState plateau = schedules_[group].plateau_state();
    State part;
    part.set("lr", plateau.lr);
    part.set("best", plateau.best);
    part.set("bad", plateau.bad);
    part.set("cooldown", plateau.cooldown);
    state.add(std::to_string(group), part);
  }
  return state;
}

void LearningRate::restore(const State& state) {
  applied_ = -1;
  for (size_t group = 0; group < schedules_.size() && schedules_[group].wants_metric(); ++group) {
    const State part = state.part(std::to_string(group));
    schedules_[group].set_plateau_state({.lr = part.real("lr"),
                                         .best = part.real("best"),
                                         .bad = part.integer("bad"),
                                         .cooldown = part.integer("cooldown")});
  }
}

void LearningRate::report(double metric) {
  for (Schedule& schedule : schedules_) {
    if (!schedule.wants_metric()) return;
    schedule.report(metric);
    applied_ = -1;
  }
}

}  // namespace lockstep
