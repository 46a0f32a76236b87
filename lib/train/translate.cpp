#include "train/translate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "data/factory.h"
#include "data/memory_dataset.h"
#include "train/config_batch.h"
#include "train/config_path.h"

namespace lockstep {

uint64_t initial_seed(const Config& config, int rank) {
  return config.run.seed + (config.run.seed_per_rank ? static_cast<uint64_t>(rank) : 0);
}

ModelSpec model_spec(const Config& config) {
  return config.model.layers.empty() ? preset_model(config.model.preset) : config.model;
}

namespace {

constexpr std::string_view kRank = "{rank}";

std::string with_rank(std::string name, int rank) {
  for (size_t at = name.find(kRank); at != std::string::npos; at = name.find(kRank))
    name.replace(at, kRank.size(), std::to_string(rank));
  return name;
}

bool has_files_per_rank(const DatasetConfig& c) {
  return std::ranges::any_of(std::array{&c.images, &c.labels, &c.file, &c.x, &c.y},
                             [](const std::string* name) { return name->find(kRank) != std::string::npos; });
}

}  // namespace

DatasetSettings dataset_settings(const Config& config, const DatasetConfig& c, int rank) {
  const auto path = [&](const std::string& name) {
    return name.empty() ? name : resolve_path(config, with_rank(name, rank));
  };
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
  if (data.make) return data.make(rank);
  const DatasetSettings settings = dataset_settings(config, data, rank);
  auto made = data.augment > 1 ? make_dataset(settings, rank, script) : make_dataset(settings, rank);
  if (has_files_per_rank(data)) made->mark_per_rank();
  return made;
}

std::unique_ptr<Augmentation> make_augmentation(const Config& config, const Dataset& train, int rank) {
  const AugmentationConfig& c = config.data.augmentation;
  const Normalization normalization(dataset_settings(config, config.data.train, rank));
  const AugmentationSettings settings{.crop_padding = c.crop_padding,
                                      .flip = c.flip,
                                      .fill = normalization(0),
                                      .seed = config.run.seed,
                                      .owner = train.per_rank() ? rank : 0};
  return settings.any() ? std::make_unique<Augmentation>(settings, train.sample_shape()) : nullptr;
}

DataPlanSpec data_plan_spec(const Config& config, int64_t samples, std::vector<int64_t> own, int64_t world_size) {
  const BatchArithmetic batch = resolve_batch(config.train, world_size);
  if (!own.empty()) {
    samples = std::accumulate(own.begin(), own.end(), int64_t{0});
    const auto [least, most] = std::ranges::minmax(own);
    if (config.sampler.uneven != "exact" && least != most)
      throw_error(
          "sampler.uneven {} is for data that is dealt to the ranks, but the ranks have {} to {} samples of their own: "
          "choose sampler.early_end",
          config.sampler.uneven, least, most);
  }
  return {.samples = samples,
          .world_size = batch.replicas,
          .batch_size = batch.batch_size,
          .accumulate = config.train.accumulate,
          .epochs = config.train.epochs,
          .uneven = parse_uneven(config.sampler.uneven),
          .drop_last = config.sampler.drop_last,
          .max_steps = config.train.max_steps,
          .own = std::move(own),
          .early_end = parse_early_end(config.sampler.early_end)};
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

SyncSettings sync_settings(const DistributedConfig& config, const VirtualRanks& ranks) {
  const auto bytes = [](double mb) { return static_cast<size_t>(mb * (1 << 20)); };
  return {.caps = {.first_bytes = bytes(config.first_bucket_mb), .bytes = bytes(config.bucket_mb)},
          .sync = config.sync,
          .overlap = config.overlap,
          .average_ranks = config.average == "ranks",
          .windows = ranks.held,
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
      .trust_coefficient = c.trust_coefficient,
      .adapt_norm_and_bias = c.adapt_norm_and_bias,
      .momentum_scheduled = config.schedule.kind == "one_cycle" && config.schedule.cycle_momentum};
  for (const ParameterGroupConfig& group : c.groups)
    settings.groups.push_back(
        {.match = group.match, .lr = group.lr, .weight_decay = group.weight_decay, .trainable = group.trainable});
  return settings;
}

std::string scale_learning_rates(const Config& config, int64_t global_batch, OptimizerSettings& settings) {
  if (!config.optimizer.lr_reference_batch) return "";
  if (config.schedule.kind == "one_cycle")
    throw_error(
        "optimizer.lr_reference_batch: schedule one_cycle takes its rates from schedule.max_lr; scale that one");
  const int64_t reference = *config.optimizer.lr_reference_batch;
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(reference);
  const bool root = config.optimizer.lr_scaling == "sqrt";
  const double factor = root ? std::sqrt(ratio) : ratio, before = settings.lr.value();
  settings.lr = before * factor;
  for (ParameterGroupRule& group : settings.groups)
    if (group.lr) *group.lr *= factor;
  return fmt::format("lr {:.6g} = {:.6g} x {}{}/{}{} ({})", *settings.lr, before, root ? "sqrt(" : "", global_batch,
                     reference, root ? ")" : "", config.optimizer.lr_scaling);
}

Freeze frozen_parameters(const Config& config) {
  return [settings = optimizer_settings(config)](const Parameter& parameter, bool norm) {
    return is_frozen(settings, parameter, norm);
  };
}

double known_weight_per_sample(const LossSpec& loss, const Dataset& dataset) {
  if (loss.kind != LossSpec::Kind::cross_entropy) return static_cast<double>(dataset.target_width());
  const bool may_ignore =
      loss.ignore_index >= 0 && loss.ignore_index < dataset.classes();  // labels are in [0, classes)
  return loss.class_weights.empty() && !may_ignore ? 1 : 0;
}

void check_noise_scale(const Config& config, double weight_per_sample) {
  if (!config.distributed.sync) throw_error("log.noise_scale: needs distributed.sync: true");
  if (config.distributed.average != "samples") throw_error("log.noise_scale: needs distributed.average: samples");
  if (weight_per_sample == 0)
    throw_error("log.noise_scale: needs samples of equal weight (no class weights, no ignored labels)");
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
