#include "train/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

#include "data/data_plan.h"
#include "data/loader.h"
#include "dist/batch_norm_sync.h"
#include "dist/virtual_ranks.h"
#include "nn/builder.h"
#include "optim/parameter_groups.h"
#include "train/config_batch.h"
#include "train/loss_scaling.h"
#include "train/translate.h"

namespace lockstep {
namespace {

// Nothing is computed here.
struct NoSums final : StatisticsReducer {
  void sum(std::span<double>) override {}
};

// The batch sizes that graphs are bound to.
struct GraphSizes {
  std::set<int64_t> training, inference;
};

struct Run {
  const Config& config;
  const DataFacts& data;
  VirtualRanks ranks;
  DataPlan plan;
  int64_t batch;

  int64_t largest_shard() const {
    return data.train.per_rank ? data.validation_samples : (data.validation_samples + ranks.count - 1) / ranks.count;
  }
  int64_t evaluation_batch() const { return std::clamp<int64_t>(largest_shard(), 1, config.eval.batch_size); }
};

Run make_run(const Config& config, const DataFacts& data, int64_t world_size) {
  const BatchArithmetic batch = resolve_batch(config.train, world_size);
  std::vector<int64_t> own;  // like rank 0's
  if (data.train.per_rank) own.assign(static_cast<size_t>(batch.replicas), data.train.size);
  return {.config = config,
          .data = data,
          .ranks = deal_virtual_ranks(config.train.virtual_ranks, 0, static_cast<int>(world_size)),
          .plan = DataPlan(data_plan_spec(config, data.train.size, std::move(own), world_size)),
          .batch = batch.batch_size};
}

// The usual batch, and the short one at the end of an epoch.
GraphSizes graph_sizes(const Run& run) {
  GraphSizes sizes;
  sizes.training.insert(run.batch);
  const EpochPlan& epoch = run.plan.epoch();
  if (const int64_t last = epoch.local_count(0, epoch.micro_steps() - 1); last > 0) sizes.training.insert(last);
  if (run.data.validation_samples == 0) return sizes;
  const int64_t batch = run.evaluation_batch();
  sizes.inference.insert(batch);
  if (const int64_t rest = run.largest_shard() % batch; rest > 0) sizes.inference.insert(rest);
  return sizes;
}

uint64_t largest_arena(Network& network, Phase phase, const std::set<int64_t>& batches) {
  size_t most = 0;
  for (const int64_t batch : batches) most = std::max(most, network.arena_bytes(phase, batch));
  return most;
}

// Every graph's products read rounded weights: a copy in fp32 where they are computed in fp32, else two of 16 bits, for
// forward and backward.
uint64_t weight_copy_bytes(const ModelSpec& model, const Shape& sample, const GraphSizes& sizes) {
  uint64_t weights = 0;
  for (const BuiltNode& node : build_layers(model, sample)) {
    if (node.layer->kind() != "linear" && node.layer->kind() != "conv2d") continue;
    weights += static_cast<uint64_t>(node.layer->parameters()[0].shape.numel());
  }
  return weights * sizeof(float) * (sizes.training.size() + sizes.inference.size());
}

// What an optimizer of these settings asks for, which gets nothing.
uint64_t optimizer_bytes(const Config& config, const Network& network, const OptimizerOps& ops) {
  uint64_t bytes = 0;
  const OptimizerSettings settings = resolve(optimizer_settings(config));
  const ParameterStore& store = network.store();
  make_optimizer(settings, make_parameter_groups(store, network.norm_parameters(), settings),
                 store.gradient_bytes() / sizeof(float), ops, [&](size_t asked) {
                   bytes += asked;
                   return Buffer();
                 });
  return bytes;
}

uint64_t sample_bytes(const Dataset::Info& data) {
  const uint64_t target = data.target_kind == TargetKind::labels
                              ? sizeof(int64_t)
                              : sizeof(float) * static_cast<uint64_t>(data.target_width);
  return static_cast<uint64_t>(data.sample_shape.numel()) * sizeof(float) + target;
}

uint64_t loader_bytes(const Run& run) {
  const auto batch = static_cast<uint64_t>(run.batch);
  const auto values = static_cast<int64_t>(batch * sizeof(float)) * run.data.train.sample_shape.numel();
  const auto slots = static_cast<uint64_t>(prefetch_depth(run.config.data.prefetch, values)) + 1;
  const auto order = static_cast<uint64_t>(run.data.train.size) * sizeof(int64_t);
  return slots * batch * (sample_bytes(run.data.train) + sizeof(int64_t)) + order;
}

// AUROC keeps the scores of its samples, for each class, and sees those of all ranks, a class at a time.
uint64_t evaluation_bytes(const Run& run, int64_t outputs) {
  if (run.data.validation_samples == 0) return 0;
  const auto shard = static_cast<uint64_t>(run.largest_shard());
  uint64_t bytes = static_cast<uint64_t>(run.evaluation_batch()) * sample_bytes(run.data.train) +
                   shard * static_cast<uint64_t>(run.ranks.held) * sizeof(int64_t);
  if (std::ranges::count(run.config.eval.metrics, "auroc") > 0)
    bytes += sizeof(double) * (shard * static_cast<uint64_t>(run.ranks.held * outputs) +
                               static_cast<uint64_t>(run.data.validation_samples));
  return bytes;
}

// Those of virtual ranks, those a step begins with, those that a skipped step puts back.
uint64_t statistics_bytes(const Run& run, uint64_t buffers) {
  const auto held = static_cast<uint64_t>(run.ranks.held);
  const uint64_t copies = 1 + (run.config.train.on_nonfinite == "skip" ? 1 : 0);
  return buffers + (held > 1 ? held * buffers : 0) + copies * held * buffers;
}

constexpr std::array<std::pair<const char*, uint64_t MemoryEstimate::*>, 11> kParts{{
    {"parameters", &MemoryEstimate::parameters},
    {"gradients", &MemoryEstimate::gradients},
    {"optimizer state", &MemoryEstimate::optimizer},
    {"average of the weights", &MemoryEstimate::average},
    {"running statistics", &MemoryEstimate::statistics},
    {"activations", &MemoryEstimate::activations},
    {"16-bit weights", &MemoryEstimate::weight_copies},
    {"loader", &MemoryEstimate::loader},
    {"evaluation", &MemoryEstimate::evaluation},
    {"data sets", &MemoryEstimate::data},
    {"checkpoint copies", &MemoryEstimate::checkpoint},
}};

}  // namespace

DataFacts data_facts(const Dataset& train, const Dataset* validation) {
  return {.train = train.info(),
          .validation_samples = validation == nullptr ? 0 : validation->size(),
          .bytes = train.memory_bytes() + (validation == nullptr ? 0 : validation->memory_bytes())};
}

DataFacts read_data_facts(const Config& config) {
  Generator generator(initial_seed(config, 0));
  const auto train = make_dataset(config, config.data.train, 0, generator);
  std::unique_ptr<Dataset> validation;
  if (config.data.val) validation = make_dataset(config, *config.data.val, 0, generator);
  return data_facts(*train, validation.get());
}

DataPlan data_plan(const Config& config, const DataFacts& data, int64_t world_size) {
  return make_run(config, data, world_size).plan;
}

MemoryEstimate estimate_memory(const Config& config, const DataFacts& data, int64_t world_size, Backend& backend) {
  const Run run = make_run(config, data, world_size);
  const GraphSizes sizes = graph_sizes(run);
  const ModelSpec model = model_spec(config);
  const DType precision = activation_type(config.train);
  NoSums batch_statistics;  // of all ranks may be those of one sample on each
  const bool across_ranks =
      parse_batch_norm_policy(config.distributed.batch_norm) == BatchNormPolicy::sync && world_size > 1;
  Network network(model, data.train.sample_shape, backend, run.batch, frozen_parameters(config),
                  across_ranks ? &batch_statistics : nullptr, precision);
  network.place();
  const ParameterStore& store = network.store();
  const uint64_t training = largest_arena(network, Phase::training, sizes.training);
  const uint64_t evaluation = largest_arena(network, Phase::inference, sizes.inference);
  const int partial_sums = std::countr_zero(static_cast<uint64_t>(run.ranks.held));

  MemoryEstimate estimate{.parameters = store.value_bytes(),
                          .gradients = store.gradient_bytes() * static_cast<uint64_t>(1 + partial_sums),
                          .optimizer = optimizer_bytes(config, network, backend.optimizer_ops()),
                          .average = config.train.ema ? store.value_bytes() : 0,
                          .statistics = statistics_bytes(run, store.buffer_bytes()),
                          .activations = std::max(training, evaluation),
                          .loader = loader_bytes(run),
                          .evaluation = evaluation_bytes(run, network.output_shape().numel()),
                          .data = data.bytes,
                          .evaluation_decides = evaluation > training};
  if (precision != DType::f32) estimate.weight_copies = weight_copy_bytes(model, data.train.sample_shape, sizes);
  if (config.checkpoint.every.kind != Period::Kind::never)
    estimate.checkpoint = estimate.parameters + estimate.optimizer + estimate.average + store.buffer_bytes();
  return estimate;
}

std::vector<MemoryEstimate::Part> MemoryEstimate::parts() const {
  std::vector<Part> all;
  for (const auto& [name, member] : kParts) all.push_back({name, this->*member});
  return all;
}

uint64_t MemoryEstimate::total() const {
  uint64_t sum = 0;
  for (const auto& [name, member] : kParts) sum += this->*member;
  return sum;
}

uint64_t MemoryEstimate::on_node(int64_t ranks) const {
  return total() + static_cast<uint64_t>(ranks - 1) * of_other_rank();
}

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

}  // namespace lockstep
