#include "optim/loss_scale.h"

#include <cmath>

#include "core/error.h"

namespace lockstep {

LossScale::LossScale(const LossScaleSettings& settings)
    : settings_(settings), scale_(static_cast<float>(settings.fixed.value_or(settings.init))) {
  if (!(scale_ > 0) || std::isinf(scale_))
    throw_error("train.loss_scale: expected a positive number, found {}", scale());
}

State LossScale::state() const {
  State state;
  state.set("scale", scale());
  state.set("good_steps", good_steps_);
  state.set("skipped", skipped_);
  state.set("in_a_row", in_a_row_);
  return state;
}

void LossScale::restore(const State& state) {
  const auto scale = static_cast<float>(state.real("scale"));
  if (!(scale > 0) || std::isinf(scale)) throw_error("saved loss scale: expected a positive number, found {}", scale);
  if (!settings_.fixed) scale_ = scale;
  good_steps_ = state.integer("good_steps");
  skipped_ = state.integer("skipped");
  in_a_row_ = state.integer("in_a_row");
}

void LossScale::update(bool found_inf) {
  if (!found_inf) {
    in_a_row_ = 0;
    if (settings_.fixed || ++good_steps_ < settings_.growth_interval) return;
    const auto grown = static_cast<float>(scale() * settings_.growth_factor);
    if (!std::isinf(grown)) scale_ = grown;
    good_steps_ = 0;
    return;
  }
  ++skipped_, ++in_a_row_;
  if (settings_.fixed) {
    if (in_a_row_ == most_in_a_row)
      throw_error("{} steps in a row were skipped: their gradients are not finite with the fixed train.loss_scale {}",
                  in_a_row_, scale());
    return;
  }
  scale_ = static_cast<float>(scale() * settings_.backoff_factor);
  good_steps_ = 0;
  if (scale() < settings_.floor || scale_ == 0)
    throw_error(
        "the loss scale fell to {:.3g}, below train.loss_scale.floor {:.3g}, after {} skipped steps in a row: the "
        "gradients are not finite whatever it is. Lower optimizer.lr, clip with train.clip_norm, or train in bf16",
        scale(), settings_.floor, in_a_row_);
}

}  // namespace lockstep
