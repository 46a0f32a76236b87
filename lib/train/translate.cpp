#include "train/translate.h"

#include "core/error.h"
#include "data/factory.h"
#include "train/config_batch.h"
#include "train/config_path.h"

namespace lockstep {

uint64_t initial_seed(const Config& config, int rank) {
  return config.run.seed + (config.run.seed_per_rank ? static_cast<uint64_t>(rank) : 0);
}

ModelSpec model_spec(const Config& config) {
  return config.model.layers.empty() ? preset_model(config.model.preset) : config.model;
}

DatasetSettings dataset_settings(const Config& config, const DatasetConfig& c) {
  const auto path = [&](const std::string& name) { return name.empty() ? name : resolve_path(config, name); };
  return {.kind = c.kind,
          .images = path(c.images),
          .labels = path(c.labels),
          .file = path(c.file),
          .features = c.features,
          .target = c.target,
          .x = path(c.x),
          .y = path(c.y),
          .name = c.name,
          .samples = c.samples,
          .classes = c.classes,
          .shape = c.shape,
          .seed = c.seed,
          .seed_per_rank = c.seed_per_rank,
          .mean = c.mean,
          .std = c.std,
          .first = c.first,
          .count = c.count,
          .where = c.where,
          .header = c.header,
          .augment = c.augment,
          .target_width = c.target_width,
          .values = c.values,
          .targets = config.train.loss == "cross_entropy" ? WantedTargets::labels : WantedTargets::values};
}

std::unique_ptr<Dataset> make_dataset(const Config& config, const DatasetConfig& data, int rank, Generator& script) {
  const DatasetSettings settings = dataset_settings(config, data);
  return data.augment > 1 ? make_dataset(settings, rank, script) : make_dataset(settings, rank);
}

DataPlanSpec data_plan_spec(const Config& config, int64_t samples, bool per_rank, int64_t world_size) {
  const BatchArithmetic batch = resolve_batch(config.train, world_size);
  return {.samples = per_rank ? samples * world_size : samples,
          .world_size = world_size,
          .batch_size = batch.batch_size,
          .accumulate = config.train.accumulate,
          .epochs = config.train.epochs,
          .uneven = parse_uneven(config.sampler.uneven),
          .drop_last = config.sampler.drop_last,
          .max_steps = config.train.max_steps};
}

SamplerSettings sampler_settings(const Config& config, const Generator& after_initialisation) {
  SamplerSettings settings{
      .shuffle = config.sampler.shuffle, .seed = config.sampler.seed, .reshuffle = config.sampler.reshuffle};
  if (config.sampler.generator == "global") {
    if (config.run.seed_per_rank)
      throw_error(
          "sampler.generator global with run.seed_per_rank: every rank would have another order of the samples");
    settings.global = after_initialisation;
  }
  return settings;
}

LossSpec loss_spec(const TrainConfig& config) {
  static constexpr std::pair<const char*, LossSpec::Kind> kKinds[] = {
      {"cross_entropy", LossSpec::Kind::cross_entropy},
      {"mse", LossSpec::Kind::mse},
      {"l1", LossSpec::Kind::l1},
      {"smooth_l1", LossSpec::Kind::smooth_l1},
      {"bce_with_logits", LossSpec::Kind::bce_with_logits}};
  LossSpec spec{.label_smoothing = config.label_smoothing,
                .class_weights = {config.class_weights.begin(), config.class_weights.end()},
                .ignore_index = config.ignore_index,
                .beta = config.beta};
  for (const auto& [name, kind] : kKinds) {
    if (config.loss == name) {
      spec.kind = kind;
      return spec;
    }
  }
  throw_error("train.loss: unknown loss '{}'", config.loss);
}

SyncSettings sync_settings(const DistributedConfig& config) {
  const auto bytes = [](double mb) { return static_cast<size_t>(mb * (1 << 20)); };
  return {.caps = {.first_bytes = bytes(config.first_bucket_mb), .bytes = bytes(config.bucket_mb)},
          .sync = config.sync,
          .overlap = config.overlap,
          .average_ranks = config.average == "ranks",
          .wire = parse_wire_format(config.compress)};
}

OptimizerSettings optimizer_settings(const Config& config) {
  const OptimizerConfig& c = config.optimizer;
  OptimizerSettings settings{
      .kind = c.kind,
      .lr = c.lr,
      .weight_decay = c.weight_decay,
      .momentum = c.momentum,
      .dampening = c.dampening,
      .nesterov = c.nesterov,
      .maximize = c.maximize,
      .amsgrad = c.amsgrad,
      .centered = c.centered,
      .beta1 = c.beta1,
      .beta2 = c.beta2,
      .eps = c.eps,
      .rho = c.rho,
      .alpha = c.alpha,
      .lr_decay = c.lr_decay,
      .initial_accumulator_value = c.initial_accumulator_value,
      .decay_norm_and_bias = c.decay_norm_and_bias,
      .momentum_scheduled = config.schedule.kind == "one_cycle" && config.schedule.cycle_momentum};
  for (const ParameterGroupConfig& group : c.groups)
    settings.groups.push_back({.match = group.match, .lr = group.lr, .weight_decay = group.weight_decay});
  return settings;
}

double known_weight_per_sample(const LossSpec& loss, const Dataset& dataset) {
  if (loss.kind != LossSpec::Kind::cross_entropy) return static_cast<double>(dataset.target_width());
  const bool may_ignore =
      loss.ignore_index >= 0 && loss.ignore_index < dataset.classes();  // labels are in [0, classes)
  return loss.class_weights.empty() && !may_ignore ? 1 : 0;
}

void check_output_fits(const Shape& output, const Dataset& dataset, const std::string& loss) {
  const int64_t width = output.numel();
  if (dataset.target_kind() == TargetKind::labels) {
    if (output.rank() != 1 || width < dataset.classes())
      throw_error("the model's output is {}, but the labels have {} classes: end with a layer of {} outputs",
                  output.str(), dataset.classes(), dataset.classes());
  } else if (width != dataset.target_width()) {
    throw_error("the model's output is {}, but {} compares it with {} values per sample", output.str(), loss,
                dataset.target_width());
  }
}

}  // namespace lockstep
