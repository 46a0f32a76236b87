// The section train.
#include <bit>

#include "train/config_keys.h"
#include "train/metrics/table.h"

namespace lockstep {
namespace {

void check_train(void* object, const MapView& view) {
  auto& train = *static_cast<TrainConfig*>(object);
  if (train.batch_size && train.global_batch_size) {
    view.fail("global_batch_size", "is given beside train.batch_size; give one of them (null takes one back)");
  }
  constexpr int64_t kDefaultBatchSize = 32;
  if (!train.batch_size && !train.global_batch_size) train.batch_size = kDefaultBatchSize;
  if (train.virtual_ranks && !std::has_single_bit(static_cast<uint64_t>(*train.virtual_ranks)))
    view.fail("virtual_ranks", "must be a power of two: their gradients are added in a binary tree");
  train.where = view.at(train.global_batch_size ? "global_batch_size" : "batch_size").str();
}

std::vector<Key> batch_keys() {
  using S = TrainConfig;
  const Rule count = between(1, 9007199254740992.0);  // 2^53
  std::vector<Key> keys;
  keys.push_back(key("epochs", &S::epochs, count, "Passes over the training samples.")
                     .also({"num_epochs", "max_epochs", "n_epochs"}));
  keys.push_back(
      key("max_steps", &S::max_steps, count, "Ends the run after so many optimizer steps; null: after the epochs.")
          .also({"steps", "total_steps"}));
  keys.push_back(key("batch_size", &S::batch_size, between(1, 1 << 30), "Samples per rank and micro-step.")
                     .by_default("32 without global_batch_size")
                     .also({"micro_batch_size", "train_batch_size", "per_device_batch_size"}));
  keys.push_back(key("global_batch_size", &S::global_batch_size, count,
                     "Samples per optimizer step, instead of batch_size: batch_size x world_size x accumulate."));
  keys.push_back(
      key("accumulate", &S::accumulate, between(1, 1 << 30), "Micro-steps per optimizer step.")
          .also({"gradient_accumulation_steps", "accumulation_steps", "accumulate_grad_batches", "grad_accum"}));
  keys.push_back(key("virtual_ranks", &S::virtual_ranks, between(1, 1 << 20),
                     "A power of two: every step is cut into so many pieces of batch_size x accumulate samples, dealt "
                     "to 1, 2, 4, ... ranks, and all of these have the same bits; null: one piece per rank.")
                     .also({"deterministic_world_size", "logical_ranks"}));
  return keys;
}

std::vector<Key> loss_keys() {
  using S = TrainConfig;
  std::vector<Key> keys;
  keys.push_back(
      key("loss", &S::loss, one_of({"cross_entropy", "mse", "l1", "smooth_l1", "bce_with_logits"}), "The loss.")
          .also({"criterion", "loss_fn", "loss_function", "objective"}));
  keys.push_back(key("reduction", &S::reduction, one_of({"mean", "sum"}),
                     "mean: the step's sum divided once by its global count; sum: not divided."));
  keys.push_back(
      key("label_smoothing", &S::label_smoothing, between(0, 1), "Share of the target spread over all classes.")
          .of({"cross_entropy"}));
  keys.push_back(key("class_weights", &S::class_weights, at_least(0),
                     "Weight of each class (bce_with_logits: of each output's positives); empty: 1.")
                     .of({"cross_entropy", "bce_with_logits"})
                     .also({"pos_weight", "weights"}));
  keys.push_back(
      key("ignore_index", &S::ignore_index, anything(), "Label of samples that don't count.").of({"cross_entropy"}));
  keys.push_back(key("beta", &S::beta, above(0), "Where the square turns into a line.").of({"smooth_l1"}));
  return keys;
}

std::vector<Key> clip_keys() {
  using S = TrainConfig;
  std::vector<Key> keys;
  keys.push_back(
      key("clip_norm", &S::clip_norm, at_least(0), "Scales the gradient down to this norm at most; null: no.")
          .also({"max_grad_norm", "gradient_clip_norm", "grad_clip", "clip", "gradient_clip_val"}));
  keys.push_back(key("clip_value", &S::clip_value, at_least(0), "Clamps every gradient to [-x, x]; null: no."));
  keys.push_back(key("clip_norm_type", &S::clip_norm_type, above(0).with_infinity(),
                     "p of the p-norm for clip_norm; inf: largest."));
  keys.push_back(key("ema", &S::ema, from_up_to(0, 1),
                     "Decay of an exponential moving average of the weights, which is evaluated in their place; null: "
                     "no.")
                     .also({"ema_decay", "weight_averaging"}));
  return keys;
}

std::vector<Key> guard_keys() {
  using S = TrainConfig;
  std::vector<Key> keys;
  keys.push_back(key("on_nonfinite", &S::on_nonfinite, one_of({"stop", "skip", "ignore"}),
                     "NaN or infinity: stop: the run ends at the next logged step or end of an epoch, naming rank, "
                     "step and rows; skip: all ranks leave out the update (checked every step, which costs an "
                     "all-reduce); ignore: goes on.")
                     .also({"terminate_on_nan", "detect_anomaly", "skip_nan"}));
  keys.push_back(key("replica_check", &S::replica_check, between(0, 9007199254740992.0),
                     "Every so many steps compares the bits of all parameters over the ranks; 0: at the end only."));
  return keys;
}

}  // namespace

const Schema& early_stopping_schema() {
  using S = EarlyStoppingConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc =
        "Ends the run, on all ranks after the same step, once a metric has not improved for `patience` evaluations in "
        "a row.";
    made.scalar_key = "metric";
    made.defaults = std::make_shared<S>();
    made.keys = {key("metric", &S::metric, one_of(watchable_metrics()), "What must get better, of eval.metrics.")
                     .also({"monitor"}),
                 key("patience", &S::patience, at_least(1), "Evaluations without progress that end the run."),
                 key("min_delta", &S::min_delta, at_least(0), "A change up to this from the last progress is none.")
                     .also({"threshold"}),
                 key("mode", &S::mode, one_of({"min", "max"}),
                     "Whether smaller or larger is better; null: what is better for the metric.")};
    return made;
  }();
  return schema;
}

const Schema& train_schema() {
  static const Schema schema = [] {
    Schema made;
    made.doc = "The training loop.";
    made.defaults = std::make_shared<TrainConfig>();
    for (auto group : {batch_keys, loss_keys, precision_keys, clip_keys, guard_keys}) {
      for (Key& key : group()) made.keys.push_back(std::move(key));
    }
    made.keys.push_back(optional_section("early_stopping", &TrainConfig::early_stopping, early_stopping_schema,
                                         "Ends the run when the validation no longer gets better; null: no."));
    discriminate(made, "loss", &TrainConfig::loss);
    made.finish = check_train;
    return made;
  }();
  return schema;
}

}  // namespace lockstep
