// Loss scaling as the training loop uses it (train.precision: fp16): the factor for a step's loss, and once its
// gradients are reduced, all ranks' one decision whether they are of any use. The decision is taken on a maximum over
// the ranks, so scales and steps never part.
//
// A skipped step counts as a step, for the log, max_steps and the schedule, on every rank alike; parameters and
// optimizer state (Adam's own count of steps included) stay as they were. The order of an update is unscale, divide,
// clip, step.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "core/shape.h"
#include "nn/parameter_store.h"
#include "optim/loss_scale.h"
#include "train/config.h"

namespace lockstep {

// train.precision as a type: of activations and their gradients.
DType activation_type(const TrainConfig& config);

class LossScaling {
 public:
  LossScaling(const TrainConfig& config, ParameterStore& store, Communicator& communicator, const OptimizerOps& ops);

  double factor() const { return scale_ ? scale_->scale() : 1; }
  // After the gradients' reduction; collective where active. True on all ranks when a gradient is not finite on any of
  // them: the step is to be left out, and the scale was lowered. Otherwise the gradients are unscaled.
  bool overflowed(int64_t step);
  bool active() const { return scale_.has_value(); }
  int64_t skipped() const { return scale_ ? scale_->skipped() : 0; }
  State state() const { return scale_ ? scale_->state() : State(); }
  void restore(const State& state) {
    if (scale_) scale_->restore(state);
  }

 private:
  std::optional<LossScale> scale_;  // none: not fp16
  ParameterStore& store_;
  Communicator& communicator_;
  const OptimizerOps& ops_;
};

}  // namespace lockstep
