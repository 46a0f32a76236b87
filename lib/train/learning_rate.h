// The schedule as the trainer uses it: one schedule per parameter group, asked before every optimizer step.
#pragma once

#include <string>
#include <vector>

#include "core/state.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config.h"
#include "train/evaluator.h"

namespace lockstep {

class LearningRate {
 public:
  // Lengths left open in the config (one-cycle's total, cosine's t_max) are the run's own.
  LearningRate(const ScheduleConfig& config, const Optimizer& optimizer, int64_t epochs, int64_t total_steps);
  // Sets the rates for optimizer step `step` of `epoch`, both from 0.
  void apply(Optimizer& optimizer, int64_t step, int64_t epoch);
  // Reduce-on-plateau watches one of these; reduced values, the same on all ranks.
  void observe_validation(const Metrics& metrics);
  void observe_epoch(double train_loss);
  double last() const { return last_; }  // of group 0, as applied
  // What a plateau remembers, by group; the other kinds are functions of the step.
  State state() const;
  void restore(const State& state);

 private:
  void report(double metric);

  bool per_epoch_;
  std::string metric_;               // train.loss, or val. and a number of the validation (checked by the trainer)
  std::vector<Schedule> schedules_;  // by group
  double last_ = 0;
  int64_t applied_ = -1;  // the step or epoch that the current rates belong to
};

}  // namespace lockstep
