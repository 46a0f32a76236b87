#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/run_agreed.h"
#include "core/build_info.h"
#include "core/counter_rng.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "optim/clip.h"
#include "train/config_batch.h"
#include "train/plan_report.h"
#include "train/translate.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Trainer::Trainer(const Config& config, Backend& backend, Communicator& communicator, RunLog& log)
    : config_(config),
      backend_(backend),
      communicator_(communicator),
      log_(log),
      fault_(communicator.rank()),
      generator_(initial_seed(config, communicator.rank())),
      plan_(DataPlanSpec{.samples = 1}) {
  communicator_.activity().prepare(config.distributed.prepare_timeout);
  run_agreed(communicator_, [&] { build(); });
  network_->lay_out([&](size_t bytes) { return communicator_.allocate(bytes); });
  check_replicas_alike(network_->store(), build_info() + ", " + backend_.libraries(), to_yaml(config_), communicator_);
  run_agreed(communicator_, [&] { build_on_parameters(); });
}

Trainer::~Trainer() = default;

// What needs no other rank: data, plan, network. The generator is used as the PyTorch script uses its global one.
void Trainer::build() {
  fault_.at_preparation();
  train_data_ = make_dataset(config_, config_.data.train, communicator_.rank(), generator_);
  if (config_.data.val) val_data_ = make_dataset(config_, *config_.data.val, communicator_.rank(), generator_);
  const BatchArithmetic batch = resolve_batch(config_.train, communicator_.size());
  batch_size_ = batch.batch_size;
  arithmetic_ = batch.line();
  plan_ = DataPlan(data_plan_spec(config_, train_data_->size(), train_data_->per_rank(), communicator_.size()));
  if (plan_.epoch().empty_on_every_rank()) throw_error("{}", empty_loader_text(plan_));
  if (plan_.epoch().empty_on_some_rank() && communicator_.rank() == 0) log::warning("{}", empty_loader_text(plan_));
  loss_spec_ = loss_spec(config_.train);
  mean_ = config_.train.reduction == "mean";
  average_ranks_ = config_.distributed.average == "ranks";
  network_ = std::make_unique<Network>(model_spec(config_), train_data_->sample_shape(), backend_, batch_size_);
}

void Trainer::build_on_parameters() {
  network_->initialize(generator_);
  check_output_fits(network_->output_shape(), *train_data_, config_.train.loss);
  if (val_data_) check_output_fits(network_->output_shape(), *val_data_, config_.train.loss);
  weight_per_sample_ = known_weight_per_sample(loss_spec_, *train_data_);
  synchronizer_ = std::make_unique<GradientSynchronizer>(network_->store(), communicator_, backend_.optimizer_ops(),
                                                         sync_settings(config_.distributed));
  const OptimizerSettings settings = resolve(optimizer_settings(config_));
  optimizer_ = make_optimizer(settings, make_parameter_groups(network_->store(), network_->norm_parameters(), settings),
                              network_->store().values().size(), backend_.optimizer_ops());
  learning_rate_ = std::make_unique<LearningRate>(config_.schedule, *optimizer_, plan_);
  slices_ = parameter_slices(network_->store());
  probes_ = make_probes(config_.log.watch, network_->store());

  // Every rank draws from its own 16 samples (per_rank data), or from its share of the common list.
  DataPlanSpec spec = plan_.spec();
  const bool own = train_data_->per_rank();
  if (own) spec.samples = train_data_->size(), spec.world_size = 1;
  sampler_ = std::make_unique<Sampler>(spec, own ? 0 : communicator_.rank(), sampler_settings(config_, generator_));
  loader_ = std::make_unique<BatchLoader>(*train_data_, batch_size_, config_.data.prefetch,
                                          [this] { return sampler_->next(); });
  if (val_data_) {
    evaluator_ = std::make_unique<Evaluator>(*val_data_, *network_, backend_, communicator_, loss_spec_,
                                             config_.eval.batch_size, config_.eval.metrics);
    judge_ = std::make_unique<ValidationJudge>(config_, evaluator_->metrics(), communicator_);
  }
  const int64_t most_rows = std::min(plan_.epoch().window_size(0) * batch_size_, plan_.epoch().rank_samples(0));
  nonfinite_ = std::make_unique<NonfinitePolicy>(config_.train.on_nonfinite, network_->store(), communicator_,
                                                 static_cast<size_t>(most_rows));
  synchronizer_->set_watch(nonfinite_->watch(backend_.optimizer_ops(), sync_settings(config_.distributed).wire));
  bound_.reserve(64);
  bound(batch_size_);
}

Trainer::Bound& Trainer::bound(int64_t count) {
  for (Bound& entry : bound_) {
    if (entry.count == count) return entry;
  }
  Graph& graph = network_->graph(Phase::training, count);
  const int64_t outputs = network_->output_shape().numel();
  bound_.push_back({count, &graph, backend_.plan_loss(loss_spec_, count, outputs)});
  return bound_.back();
}

RunResult Trainer::run() {
  log_.start(to_yaml(config_), communicator_.size(), network_->store().total_parameters(), arithmetic_);
  log_probes("before broadcast", false);
  broadcast_model(network_->store(), communicator_);
  log_probes("after broadcast", false);

  RunResult result;
  const Clock::time_point start = Clock::now();
  for (int64_t epoch = 0; step_ < plan_.total_steps() && !stopped_; ++epoch) {
    const int64_t steps = std::min(plan_.epoch().steps(), plan_.total_steps() - step_);
    result.epochs.push_back(train_epoch(epoch, steps));
  }
  if (config_.distributed.sync) check_parameters_equal(network_->store(), communicator_, step_);
  result.steps = step_;
  result.stopped_early = stopped_ && step_ < plan_.total_steps();
  if (evaluated_) result.best = judge_->best();
  log_.finish(
      {.steps = step_, .seconds = seconds_since(start), .stopped_early = result.stopped_early, .best = result.best});
  return result;
}

EpochResult Trainer::train_epoch(int64_t epoch, int64_t steps) {
  EpochResult result{.epoch = epoch};
  evaluation_seconds_ = 0;
  const Clock::time_point start = Clock::now();
  begin_epoch(epoch);
  for (int64_t k = 0; k < steps && !stopped_; ++k) {
    train_step(k);
    result.samples += plan_.epoch().step_samples(k);
    if (replica_check_due()) check_parameters_equal(network_->store(), communicator_, step_);
    if (log_due()) log_step(k);
    if (evaluation_due_after_step()) evaluate(result);
  }
  double sums[3] = {epoch_sums_.loss, epoch_sums_.weight, nonfinite_->flag()};
  communicator_.all_reduce(sums, ReduceOp::sum);
  result.train_loss = sums[0] / sums[1];
  nonfinite_->stop_if_bad(sums[2], sums[0], step_ - 1);
  result.seconds = seconds_since(start) - evaluation_seconds_;
  if (sums[1] > 0) learning_rate_->observe_epoch(result.train_loss);
  if (evaluation_due_after_epoch(epoch) && !stopped_) evaluate(result);
  if (stopped_ && !log_due()) log_step((step_ - 1) % plan_.epoch().steps());
  return result;
}

void Trainer::begin_epoch(int64_t epoch) {
  epoch_ = epoch;
  epoch_sums_ = {};
  last_log_ = Clock::now();
  samples_since_log_ = 0;
  loader_->start(plan_.epoch().micro_steps(), [&] { sampler_->set_epoch(epoch); });
}

void Trainer::train_step(int64_t step_in_epoch) {
  communicator_.activity().step(step_);
  fault_.at_step(step_);
  const int64_t micro_steps = plan_.epoch().window_size(step_in_epoch);
  window_ = {};
  window_indices_.clear();
  bool accumulate = false;
  nonfinite_->begin_step();
  for (int64_t i = 0; i < micro_steps; ++i) {
    synchronizer_->begin_micro_step(static_cast<int>(i), static_cast<int>(micro_steps));
    const Batch& batch = loader_->next();
    if (config_.log.indices) window_indices_.emplace_back(batch.rows.begin(), batch.rows.end());
    if (batch.count == 0) continue;
    nonfinite_->add_rows(batch.rows);
    const LossSums sums = micro_step(batch, i, step_in_epoch, accumulate);
    window_.loss += sums.loss, window_.weight += sums.weight;
    accumulate = true;
  }
  if (!accumulate) std::ranges::fill(network_->store().gradients(), 0.0f);
  synchronizer_->finish();
  nonfinite_->observe(step_, window_.loss);
  learning_rate_->apply(*optimizer_, step_, epoch_);
  if (!nonfinite_->skip(step_, backend_.optimizer_ops())) update();
  samples_since_log_ += plan_.epoch().step_samples(step_in_epoch);
  ++step_;
}

void Trainer::update() {
  if (mean_ && weight_per_sample_ == 0 && !average_ranks_) divide_by_global_weight();
  gradient_norm_ = clip();
  optimizer_->step(network_->store().values(), network_->store().gradients());
  epoch_sums_.loss += window_.loss, epoch_sums_.weight += window_.weight;
}

// distributed.average samples: every sample of the step weighs the same, wherever it is. ranks: a micro-step gives its
// own mean, divided by the micro-steps of the window (the scripts' loss / accumulate), whatever their sizes.
double Trainer::denominator(int64_t step_in_epoch, int64_t batch) const {
  if (!mean_) return 1;
  const auto micro_steps = static_cast<double>(plan_.epoch().window_size(step_in_epoch));
  if (weight_per_sample_ == 0) return average_ranks_ ? micro_steps : 1;
  if (average_ranks_) return micro_steps * static_cast<double>(batch) * weight_per_sample_;
  return static_cast<double>(samples_of_step(step_in_epoch)) * weight_per_sample_;
}

LossSums Trainer::micro_step(const Batch& batch, int64_t index, int64_t step_in_epoch, bool accumulate) {
  Bound& bound = this->bound(batch.count);
  Graph& graph = *bound.graph;
  const StepStream stream{.key = mix_key(config_.run.seed, static_cast<uint64_t>(communicator_.rank()),
                                         static_cast<uint64_t>(step_), static_cast<uint64_t>(index)),
                          .torch = &generator_};
  graph.forward(batch.x, stream);
  const TensorView target = batch.labels != nullptr
                                ? TensorView{batch.labels, {Shape{batch.count}, 1, DType::i64}}
                                : TensorView{batch.targets, {Shape{batch.count, train_data_->target_width()}}};
  const double scale = 1 / denominator(step_in_epoch, batch.count);
  const LossSums sums = bound.loss->forward_backward(graph.output(), target, scale, graph.output_gradient());
  if (average_ranks_ && mean_ && weight_per_sample_ == 0 && sums.weight > 0)  // the weights are known only now
    backend_.optimizer_ops().scale(static_cast<size_t>(graph.output().numel()), graph.output_gradient(),
                                   static_cast<float>(1 / sums.weight));
  graph.backward(accumulate, *synchronizer_);
  return sums;
}

// Class weights and ignored targets: the denominator is known only after the forward passes of all ranks.
void Trainer::divide_by_global_weight() {
  double weight = window_.weight;
  if (config_.distributed.sync) communicator_.all_reduce({&weight, 1}, ReduceOp::sum);
  if (weight == 0) return;  // nothing but ignored targets: the gradient is zero already
  const std::span<float> gradients = network_->store().gradients();
  backend_.optimizer_ops().scale(gradients.size(), gradients.data(), static_cast<float>(1 / weight));
}

// What the gradient is divided by: the samples of all ranks; without synchronisation each replica is on its own.
int64_t Trainer::samples_of_step(int64_t step_in_epoch) const {
  const EpochPlan& epoch = plan_.epoch();
  if (config_.distributed.sync) return epoch.step_samples(step_in_epoch);
  int64_t samples = 0;
  const int64_t first = step_in_epoch * plan_.spec().accumulate;
  for (int64_t i = 0; i < epoch.window_size(step_in_epoch); ++i)
    samples += epoch.local_count(communicator_.rank(), first + i);
  return samples;
}

// Returns the gradient norm before clipping, or -1 when nobody asked.
double Trainer::clip() {
  const std::span<float> gradients = network_->store().gradients();
  double norm = -1;
  if (config_.train.clip_norm)
    norm = clip_by_norm(backend_.optimizer_ops(), slices_, gradients, *config_.train.clip_norm,
                        config_.train.clip_norm_type);
  if (config_.train.clip_value) clip_by_value(backend_.optimizer_ops(), slices_, gradients, *config_.train.clip_value);
  return norm;
}

}  // namespace lockstep
