#include "train/loss_scaling.h"

#include <cmath>

#include "core/error.h"
#include "core/log.h"

namespace lockstep {

DType activation_type(const TrainConfig& config) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    if (name(type) == config.precision) return type;
  }
  throw_error("train.precision: expected fp32, bf16 or fp16, found '{}'", config.precision);
}

LossScaling::LossScaling(const TrainConfig& config, ParameterStore& store, Communicator& communicator,
                         const OptimizerOps& ops)
    : store_(store), communicator_(communicator), ops_(ops) {
  const LossScaleConfig& c = config.loss_scale;
  if (activation_type(config) == DType::f16)
    scale_.emplace(LossScaleSettings{.fixed = c.fixed,
                                     .init = c.init,
                                     .growth_factor = c.growth_factor,
                                     .backoff_factor = c.backoff_factor,
                                     .growth_interval = c.growth_interval,
                                     .floor = c.floor});
}

bool LossScaling::overflowed(int64_t step) {
  if (!scale_) return false;
  const std::span<float> gradients = store_.gradients();
  // A sum of squares in double is finite unless an element is not.
  double bad = std::isfinite(ops_.sum_of_squares(gradients.size(), gradients.data())) ? 0 : 1;
  communicator_.all_reduce({&bad, 1}, ReduceOp::max);
  const bool found_inf = bad != 0;
  if (!found_inf) ops_.scale(gradients.size(), gradients.data(), scale_->inverse());
  scale_->update(found_inf);
  if (found_inf && communicator_.rank() == 0)
    log::info("step {} is skipped: its gradient overflowed; the loss scale is now {:.6g}", step, scale_->scale());
  return found_inf;
}

}  // namespace lockstep
