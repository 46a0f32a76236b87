#include "train/sharding.h"

#include <algorithm>

#include "core/error.h"
#include "train/loss_scaling.h"
#include "train/probe.h"
#include "train/translate.h"

namespace lockstep {

std::string why_not_sharded(const Config& config, const Backend& backend, Communicator& communicator,
                            bool weight_known) {
  if (!config.distributed.sync) return "distributed.sync: false keeps the ranks apart";
  if (!backend.memory().host()) return "parameters lie on GPUs";
  if (communicator.shards() == nullptr)
    return fmt::format("ranks do not reach each other's memory (communicator {})", communicator.name());
  if (config.distributed.compress != "none") return "distributed.compress rounds whole gradients";
  if (config.train.clip_norm) return "train.clip_norm takes the norm of the whole gradient";
  if (config.train.clip_value) return "train.clip_value changes the whole gradient";
  if (activation_type(config.train) == DType::f16) return "train.precision: fp16 looks for overflow in all of it";
  if (config.train.on_nonfinite == "skip") return "train.on_nonfinite: skip looks at the whole gradient";
  if (config.log.noise_scale) return "log.noise_scale measures the whole gradient";
  if (std::ranges::any_of(config.log.watch, watches_gradient)) return "log.watch shows gradients";
  if (config.train.reduction == "mean" && !weight_known && config.distributed.average != "ranks")
    return "the gradient is divided by the targets' weights when it is summed";
  if (adapts_by_parameter(optimizer_settings(config)))
    return fmt::format("optimizer.kind: {} takes norms of whole parameters", config.optimizer.kind);
  return "";
}

bool decide_sharding(const Config& config, const std::string& why_not, int ranks, size_t gradient_bytes) {
  const std::string& wanted = config.distributed.sharded_update;
  if (wanted == "off" || ranks == 1) return false;
  if (wanted == "on" && !why_not.empty())
    throw_error("distributed.sharded_update: on: {}; sharded_update: auto goes on without", why_not);
  return why_not.empty() && (wanted == "on" || gradient_bytes >= kLeastShardedBytes);
}

}  // namespace lockstep
