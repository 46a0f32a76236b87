// The trainer before its first step: data, counts, network, and what stands on its parameters. Whatever is wrong with a
// config or a launch is found here, on all ranks alike.
#include <algorithm>
#include <exception>

#include "comm/run_agreed.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "train/batch_norm_plan.h"
#include "train/checkpoint/init_from.h"
#include "train/config_batch.h"
#include "train/own_data.h"
#include "train/plan_report.h"
#include "train/sharding.h"
#include "train/trainer.h"
#include "train/translate.h"

namespace lockstep {

static std::unique_ptr<RunTrace> make_trace(const LogConfig& log, Communicator& ranks, const std::string& dir) {
  if (log.trace.empty()) return nullptr;
  return std::make_unique<RunTrace>(log.trace.front(), log.trace.back(), ranks, dir);
}

Trainer::Trainer(const Config& config, Backend& backend, Communicator& communicator, RunLog& log,
                 const ResumeRequest& resume, std::optional<StopSources> stop, const MemoryCheck& check_memory)
    : config_(config),
      backend_(backend),
      trace_(make_trace(config.log, communicator, log.dir())),
      communicator_(trace_ ? trace_->communicator() : communicator),
      log_(log),
      exceptions_(std::uncaught_exceptions()),
      resolved_(to_yaml(config)),
      fault_(communicator.rank()),
      generator_(initial_seed(config, communicator.rank())),
      plan_(DataPlanSpec{.samples = 1}),
      epoch_plan_(plan_.epoch()) {
  communicator_.activity().prepare(config.distributed.prepare_timeout);
  run_agreed(communicator_, [&] { build(); });
  run_agreed(communicator_, [&] { count_steps(); });
  const std::optional<Checkpoint> checkpoint = take_up(resume);
  run_agreed(communicator_, [&] {
    build_network();
    network_->place();
  });
  if (check_memory) run_agreed(communicator_, [&] { check_memory(data_facts(*train_data_, val_data_.get())); });
  const std::string arithmetic = backend_.arithmetic(activation_type(config_.train)).text;
  check_replicas_alike(network_->store(), fmt::format("{}, {}, {}", build_info(), backend_.libraries(), arithmetic),
                       resolved_, communicator_);
  lay_out();
  run_agreed(communicator_, [&] { build_on_parameters(); });
  const std::vector<KeepFacts> keep = gather_keep_facts(*train_data_, backend_, communicator_);
  run_agreed(communicator_, [&] {
    make_loader(keep);
    attach_trace();
  });
  if (resumed_) restore(checkpoint ? &*checkpoint : nullptr);
  if (stop) stop_ = std::make_unique<StopRequest>(std::move(*stop), communicator_);
}

// While an error unwinds sums may be under way for which other ranks no longer come: memory cannot go before they have.
Trainer::~Trainer() {
  if (std::uncaught_exceptions() > exceptions_) communicator_.give_up();
}

// The generator is used as the PyTorch script uses its global one: for data, then for initial weights.
void Trainer::build() {
  fault_.at_preparation();
  train_data_ = make_dataset(config_, config_.data.train, communicator_.rank(), generator_);
  if (config_.data.val) val_data_ = make_dataset(config_, *config_.data.val, communicator_.rank(), generator_);
  ranks_ = deal_virtual_ranks(config_.train.virtual_ranks, communicator_.rank(), communicator_.size());
  pieces_.resize(static_cast<size_t>(ranks_.held));
  const BatchArithmetic batch = resolve_batch(config_.train, communicator_.size());
  batch_size_ = batch.batch_size;
  arithmetic_ = batch.line();
  loss_spec_ = loss_spec(config_.train);
  mean_ = config_.train.reduction == "mean";
  average_ranks_ = config_.distributed.average == "ranks";
}

// How many steps all ranks take: the ranks' own data sets may differ in size.
void Trainer::count_steps() {
  const std::vector<int64_t> own = own_sizes("data.train", *train_data_, communicator_);
  if (val_data_) own_sizes("data.val", *val_data_, communicator_);
  plan_ = DataPlan(data_plan_spec(config_, train_data_->size(), own, communicator_.size()));
  if (plan_.epoch().empty_on_every_rank()) throw_error("{}", empty_loader_text(plan_));
  if (plan_.epoch().empty_on_some_rank() && communicator_.rank() == 0) log::warning("{}", empty_loader_text(plan_));
}

void Trainer::build_network() {
  const ModelSpec model = model_spec(config_);
  const std::vector<BatchNormSite> norms = batch_norm_sites(model, train_data_->sample_shape());
  const BatchNormPolicy policy = parse_batch_norm_policy(config_.distributed.batch_norm);
  const bool across_ranks = policy == BatchNormPolicy::sync && communicator_.size() > 1 && !norms.empty();
  if (const std::string text = one_value_text(plan_, norms, across_ranks); !text.empty()) throw_error("{}", text);
  if (across_ranks) batch_statistics_ = std::make_unique<CommunicatorReducer>(communicator_);
  network_ =
      std::make_unique<Network>(model, train_data_->sample_shape(), backend_, batch_size_, frozen_parameters(config_),
                                batch_statistics_.get(), activation_type(config_.train));
}

// A sharded update needs memory that the other ranks reach. There may be too little of it: then it is done without, on
// all ranks alike. Their configs are compared already.
void Trainer::lay_out() {
  const std::string& wanted = config_.distributed.sharded_update;
  ParameterStore& store = network_->store();
  Shards* shards = nullptr;
  run_agreed(communicator_, [&] {
    weight_per_sample_ = known_weight_per_sample(loss_spec_, *train_data_);
    const std::string why_not = why_not_sharded(config_, backend_, communicator_, weight_per_sample_ != 0);
    if (decide_sharding(config_, why_not, communicator_.size(), store.gradient_bytes()))
      shards = communicator_.shards();
  });
  const auto parameters = [&](size_t bytes) {
    if (shards == nullptr || !shards->reach(store.gradients())) return backend_.memory().allocate(bytes);
    try {
      return communicator_.allocate(bytes);
    } catch (const PoliteError& error) {
      if (wanted == "on") throw;
      if (communicator_.rank() == 0) log::warning("{}", error.what());
      return backend_.memory().allocate(bytes);
    }
  };
  network_->lay_out([&](size_t bytes) { return communicator_.allocate(bytes); }, parameters);
  if (shards == nullptr) return;
  if (shards->reach(store.gradients()) && shards->reach(store.trainable_values())) {
    sharded_ = std::make_unique<ShardedUpdate>(communicator_, store.gradients().size());
    return;
  }
  const std::string reason = "gradients and parameters do not all lie in shared memory";
  if (wanted == "on") throw PoliteError("distributed.sharded_update: on: " + reason);
  if (communicator_.rank() == 0) log::warning("{}: every rank updates all parameters", reason);
}

// Rank 0 reads; the others get its weights with the broadcast at the start of the run.
void Trainer::load_initial_weights() {
  if (communicator_.rank() != 0) return;
  log::info("{}", init_from(config_, network_->store()).text());
}

void Trainer::build_on_parameters() {
  network_->initialize(generator_);
  initial_words_ = generator_.words();
  if (!config_.init_from.file.empty() && !resumed_) load_initial_weights();
  check_output_fits(network_->output_shape(), *train_data_, config_.train.loss);
  if (val_data_) check_output_fits(network_->output_shape(), *val_data_, config_.train.loss);
  SyncSettings sync = sync_settings(config_.distributed, ranks_);
  sync.sums = sharded_ == nullptr;
  if (batch_statistics_)
    sync.overlap = false;  // its sums come in the midst of backward, where buckets must not be open
  synchronizer_ =
      std::make_unique<GradientSynchronizer>(network_->store(), communicator_, backend_.optimizer_ops(), sync);
  OptimizerSettings settings = resolve(optimizer_settings(config_));
  const int64_t global_batch = resolve_batch(config_.train, communicator_.size()).global_batch_size;
  if (const std::string scaling = scale_learning_rates(config_, global_batch, settings); !scaling.empty())
    arithmetic_ += ", " + scaling;
  auto groups = make_parameter_groups(network_->store(), network_->norm_parameters(), settings);
  if (sharded_) groups = sharded_->own_part(std::move(groups));
  optimizer_ = make_optimizer(settings, std::move(groups), network_->store().gradients().size(),
                              backend_.optimizer_ops(), [this](size_t bytes) { return backend_.allocate(bytes); });
  learning_rate_ = std::make_unique<LearningRate>(config_.schedule, *optimizer_, plan_.spec().epochs, total_steps_);
  slices_ = parameter_slices(network_->store());
  if (config_.train.clip_norm)
    norm_clip_.emplace(backend_.optimizer_ops(), slices_, *config_.train.clip_norm, config_.train.clip_norm_type);
  if (config_.log.noise_scale) {
    check_noise_scale(config_, weight_per_sample_);
    noise_scale_ = std::make_unique<NoiseScale>(communicator_, backend_.optimizer_ops(), ranks_.held);
    synchronizer_->observe(noise_scale_.get());
  }
  if (config_.train.ema)
    average_ = std::make_unique<WeightAverage>(*config_.train.ema, network_->store().values(), backend_.optimizer_ops(),
                                               backend_.memory());
  probes_ = make_probes(config_.log.watch, network_->store());

  // Every rank draws from its own samples (per_rank data), or from its share of the common list.
  DataPlanSpec spec = plan_.spec();
  const bool own = train_data_->per_rank();
  if (own) spec.samples = train_data_->size(), spec.world_size = 1, spec.own.clear();
  order_ =
      std::make_unique<StepOrder>(spec, own ? 0 : ranks_.first, ranks_.held, sampler_settings(config_, generator_));
  augmentation_ = make_augmentation(config_, *train_data_, communicator_.rank());
  if (val_data_) {
    evaluator_ = std::make_unique<Evaluator>(*val_data_, *network_, backend_, communicator_, ranks_, loss_spec_,
                                             config_.eval.batch_size, config_.eval.metrics);
    judge_ = std::make_unique<ValidationJudge>(config_, evaluator_->metrics(), communicator_);
  }
  statistics_ = std::make_unique<RunningStatistics>(parse_batch_norm_policy(config_.distributed.batch_norm),
                                                    network_->store(), ranks_, communicator_);
  const int64_t most_rows =
      std::min(plan_.epoch().window_size(0) * batch_size_, plan_.epoch().rank_samples(ranks_.first));
  nonfinite_ = std::make_unique<NonfinitePolicy>(config_.train.on_nonfinite, network_->store(), statistics_->all(),
                                                 communicator_, static_cast<size_t>(most_rows * ranks_.held));
  loss_scaling_ =
      std::make_unique<LossScaling>(config_.train, network_->store(), communicator_, backend_.optimizer_ops());
  // With loss scaling a gradient that overflows is no accident: only losses are watched.
  if (!loss_scaling_->active()) synchronizer_->observe(nonfinite_->watch(backend_.optimizer_ops(), sync.wire));
  step_start_.statistics = backend_.allocate(statistics_->all().size_bytes());
  step_start_.samples.resize(statistics_->samples().size());
  if (writer_) check_space();
  bound_.reserve(64);
  bound(batch_size_);
  prepare_recordings();
}

void Trainer::attach_trace() {
  if (!trace_) return;
  trace_->check(total_steps_);
  network_->trace(&trace_->compute());
  loader_->trace(&trace_->loader(), &trace_->compute());
  clock_.trace(&trace_->compute());
}

// Batches lie where the device can fetch them, or it is told their rows.
void Trainer::make_loader(std::span<const KeepFacts> keep) {
  const KeepDecision decision = decide_keep(config_.device, keep);
  data_place_ = decision.text;
  const ImageFormat image = augmentation_ ? augmentation_->format() : ImageFormat{};
  const auto rows = static_cast<size_t>(batch_size_), width = static_cast<size_t>(train_data_->target_width());
  const bool labels = train_data_->target_kind() == TargetKind::labels;
  feed_ = decision.keep
              ? make_keeping_feed(*train_data_, image, batch_size_, backend_)
              : backend_.make_feed(rows * static_cast<size_t>(train_data_->sample_shape().numel()) * sizeof(float),
                                   rows * (labels ? sizeof(int64_t) : width * sizeof(float)));
  const auto next_rows = [this] {
    fault_.at_loader(batches_ordered_++);
    return order_->next();
  };
  BatchLoader::Change change;
  if (augmentation_) change = [this](const Batch& batch) { augmentation_->apply(batch); };
  loader_ = std::make_unique<BatchLoader>(
      *train_data_, batch_size_, config_.data.prefetch, next_rows, change,
      [this](size_t bytes) { return feed_->allocate(bytes); }, decision.keep ? Deliver::rows : Deliver::samples);
}

}  // namespace lockstep
