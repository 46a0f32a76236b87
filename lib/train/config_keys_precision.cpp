// The keys of train about the precision of activations: precision, loss_scale.
#include "train/config_keys.h"

namespace lockstep {

const Schema& loss_scale_schema() {
  using S = LossScaleConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc =
        "Of precision fp16, where the loss is multiplied so that small gradients survive; torch.amp.GradScaler's rule. "
        "A step with a gradient that is not finite on any rank is skipped by all: it counts for the log, max_steps and "
        "the "
        "schedule; parameters and optimizer state stay. A number stands for `fixed`.";
    made.scalar_key = "fixed";
    made.defaults = std::make_shared<S>();
    made.keys = {
        key("fixed", &S::fixed, above(0), "Always this scale; null: dynamic, by the keys below.").also({"static"}),
        key("init", &S::init, above(0), "The first scale.").also({"init_scale", "initial"}),
        key("growth_factor", &S::growth_factor, at_least(1), "Raises the scale after growth_interval good steps."),
        key("backoff_factor", &S::backoff_factor, Rule{.low = 0, .high = 1, .low_open = true, .high_open = true},
            "Lowers it at each skipped step."),
        key("growth_interval", &S::growth_interval, between(1, 9007199254740992.0), "Good steps in a row.")
            .also({"scale_window", "loss_scale_window"}),
        key("floor", &S::floor, at_least(0), "The run ends with an error when the scale falls below.")
            .also({"min", "min_scale", "min_loss_scale"})};
    return made;
  }();
  return schema;
}

std::vector<Key> precision_keys() {
  using S = TrainConfig;
  std::vector<Key> keys;
  keys.push_back(
      key("precision", &S::precision, one_of({"fp32", "bf16", "fp16"}),
          "Type in which activations and their gradients are stored and multiplied, in training and evaluation; sums, "
          "weights, weight gradients, normalisation, loss and optimizer are fp32 always. bf16 runs on AVX-512 bf16 or "
          "AMX; elsewhere, and for fp16, products are computed in fp32, at no gain in time.")
          .also({"mixed_precision", "amp", "dtype", "fp16", "bf16"}));
  keys.push_back(section("loss_scale", &S::loss_scale, loss_scale_schema, "Loss scaling of fp16.").also({"scaler"}));
  return keys;
}

}  // namespace lockstep
