#include "train/trainer.h"

#include <algorithm>

#include "comm/sum_tree.h"
#include "core/counter_rng.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "optim/clip.h"
#include "train/environment.h"
#include "train/model_digest.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

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
  RunResult result;
  if (finished()) {
    log::info("{}: the run has ended after {} steps, nothing is left to train", resumed_from_, step_);
    add_outcome(result);
    return result;
  }
  log_.start({.config_yaml = resolved_,
              .world_size = communicator_.size(),
              .parameters = network_->store().total_parameters(),
              .samples = plan_.spec().samples,
              .steps_per_epoch = plan_.epoch().steps(),
              .arithmetic = arithmetic_,
              .environment = environment_facts(backend_, communicator_),
              .resumed = resumed_log()});
  log_probes("before broadcast", false);
  if (!resumed_) {
    broadcast_model(network_->store(), communicator_);
    statistics_->restart();
    if (average_) average_->restart();
  }
  log_probes("after broadcast", false);

  const Clock::time_point start = Clock::now();
  while (!finished() && !interrupted_) result.epochs.push_back(train_epoch());
  if (checkpoints()) save();
  if (interrupted_) return interrupted_result(std::move(result));
  if (config_.distributed.sync) {
    statistics_->agree();
    check_parameters_equal(network_->store(), communicator_, step_);
  }
  finish_saving();
  add_outcome(result);
  const double seconds = seconds_since(start);
  log_.finish({.steps = step_,
               .seconds = seconds,
               .stopped_early = result.stopped_early,
               .best = result.best,
               .model_sha256 = communicator_.rank() == 0 ? model_digest(network_->store()) : ""});
  return result;
}

void Trainer::add_outcome(RunResult& result) const {
  result.steps = step_;
  result.stopped_early = stopped_ && step_ < total_steps_;
  if (evaluated_) result.best = judge_->best();
}

RunResult Trainer::interrupted_result(RunResult result) {
  finish_saving();
  result.steps = step_;
  result.interrupted = interrupted_;
  result.saved = checkpoints();
  log_.stopped(step_, *interrupted_, result.saved);
  return result;
}

// An epoch, or what a resume left of one.
EpochResult Trainer::train_epoch() {
  EpochResult result{.epoch = epoch_};
  evaluation_seconds_ = 0;
  const Clock::time_point start = Clock::now();
  begin_epoch(epoch_, position_);
  epoch_open_ = true;
  const int64_t steps = std::min(epoch_plan_.steps(), total_steps_ - step_);
  if (evaluation_pending_) evaluate(result);
  for (int64_t k = 0; k < steps && !stopped_ && !interrupted_; ++k) {
    if (!train_step(k)) break;
    result.samples += epoch_plan_.step_samples(k);
    if (replica_check_due()) check_parameters_equal(network_->store(), communicator_, step_);
    if (log_due()) log_step(k);
    if (evaluation_due_after_step()) evaluate(result);
    if (k + 1 < steps && !stopped_ && !interrupted_ && checkpoint_due_after_step()) save();
  }
  result.seconds = seconds_since(start) - evaluation_seconds_;
  if (!interrupted_) end_epoch(result);
  return result;
}

void Trainer::end_epoch(EpochResult& result) {
  const LossSums local = sum_of_pieces(&Piece::epoch);
  double sums[3] = {local.loss, local.weight, nonfinite_->flag()};
  communicator_.all_reduce(sums, ReduceOp::sum);
  result.train_loss = sums[0] / sums[1];
  nonfinite_->stop_if_bad(sums[2], sums[0], step_ - 1);
  if (evaluation_due_after_epoch(epoch_) && !stopped_) evaluate(result);
  if (interrupted_) return;
  epoch_open_ = false;
  if (sums[1] > 0) learning_rate_->observe_epoch(result.train_loss);
  if (stopped_ && !log_due() && step_in_epoch_ >= 0) log_step(step_in_epoch_);
  const bool whole = step_in_epoch_ + 1 >= epoch_plan_.steps();  // not where max_steps cuts it
  if (!whole) return;
  ++epoch_;
  position_ = 0;
  for (Piece& piece : pieces_) piece.epoch = {};
  if (!finished() && (checkpoint_due_after_step() || checkpoint_due_after_epoch())) save();
}

// The position in the list that this rank draws from: the common one, or that of its own data.
int64_t Trainer::own_position() const {
  if (!train_data_->per_rank()) return position_;
  return std::min(first_step_ * plan_.spec().accumulate * batch_size_, train_data_->size());
}

void Trainer::begin_epoch(int64_t epoch, int64_t position) {
  epoch_ = epoch;
  position_ = position;
  epoch_plan_ = plan_.rest_of_epoch(position);
  first_step_ = plan_.epoch().steps() - epoch_plan_.steps();
  step_in_epoch_ = -1;
  last_log_ = Clock::now();
  samples_since_log_ = 0;
  loader_->start(epoch_plan_.micro_steps() * ranks_.held, [this] { order_->set_epoch(epoch_, own_position()); });
}

// At a place where no sums are under way. All ranks ask equally often.
bool Trainer::asked_to_end() {
  if (stop_ && !interrupted_) interrupted_ = stop_->poll();
  return interrupted_.has_value();
}

void Trainer::keep_step_start(int64_t step_in_epoch) {
  step_start_.generator.reset();
  if (!stop_ || epoch_plan_.window_size(step_in_epoch) * ranks_.held == 1) return;
  std::ranges::copy(statistics_->all(), step_start_.statistics.begin());
  std::ranges::copy(statistics_->samples(), step_start_.samples.begin());
  step_start_.generator = generator_;
}

void Trainer::go_back_to_step_start() {
  if (!step_start_.generator) return;
  std::ranges::copy(step_start_.statistics, statistics_->all().begin());
  std::ranges::copy(step_start_.samples, statistics_->samples().begin());
  generator_ = *step_start_.generator;
}

bool Trainer::train_step(int64_t step_in_epoch) {
  communicator_.activity().step(step_);
  fault_.at_step(step_);
  nonfinite_->begin_step();
  clock_.begin_step(step_, log_due_after(step_ + 1));
  if (noise_scale_) noise_scale_->begin_step(log_due_after(step_ + 1));
  keep_step_start(step_in_epoch);
  for (int64_t piece = 0; piece < ranks_.held; ++piece) {
    if (window(piece, step_in_epoch)) continue;
    go_back_to_step_start();
    return false;
  }
  if (noise_scale_)  // with mean_ the arena holds the sum divided by the samples
    noise_scale_->end_step(network_->store().gradients(), epoch_plan_.step_samples(step_in_epoch), mean_,
                           loss_scaling_->factor());
  nonfinite_->observe(step_, sum_of_pieces(&Piece::window).loss);
  learning_rate_->apply(*optimizer_, step_, epoch_);
  const bool overflowed = loss_scaling_->overflowed(step_);
  if (!nonfinite_->skip(step_, backend_.optimizer_ops(), overflowed) && !overflowed) update();
  clock_.lap(StepPhase::optimizer);
  samples_since_log_ += epoch_plan_.step_samples(step_in_epoch);
  position_ = epoch_plan_.position_after(step_in_epoch);
  step_in_epoch_ = step_in_epoch;
  ++step_;
  return true;
}

// The accumulation window of one virtual rank. False: the run is to end, the window was left.
bool Trainer::window(int64_t piece, int64_t step_in_epoch) {
  const int64_t micro_steps = epoch_plan_.window_size(step_in_epoch);
  Piece& mine = pieces_[static_cast<size_t>(piece)];
  mine.window = {};
  mine.indices.clear();
  statistics_->enter(piece);
  bool accumulate = false;
  int64_t samples = 0;
  for (int64_t i = 0; i < micro_steps; ++i) {
    if (asked_to_end()) return false;
    synchronizer_->begin_micro_step(static_cast<int>(i), static_cast<int>(micro_steps));
    const Batch& batch = loader_->next();
    clock_.lap(StepPhase::data);
    if (config_.log.indices) mine.indices.emplace_back(batch.rows.begin(), batch.rows.end());
    if (batch.count == 0) {
      if (batch_statistics_ == nullptr) continue;
      empty_micro_step(accumulate);
      accumulate = true;
      continue;
    }
    nonfinite_->add_rows(batch.rows);
    const LossSums sums = micro_step(batch, piece, i, step_in_epoch, accumulate);
    mine.window.loss += sums.loss, mine.window.weight += sums.weight;
    accumulate = true;
    samples += batch.count;
  }
  if (!accumulate) std::ranges::fill(network_->store().gradients(), 0.0f);
  statistics_->leave(piece, samples);
  synchronizer_->finish();
  clock_.lap(StepPhase::communication);
  if (noise_scale_) noise_scale_->end_window(samples);
  return true;
}

LossSums Trainer::sum_of_pieces(LossSums Piece::*sums) {
  const auto sum = [&](double LossSums::*member) {
    return tree_sum(static_cast<int>(ranks_.held),
                    [&](int piece) { return pieces_[static_cast<size_t>(piece)].*sums.*member; });
  };
  return {.loss = sum(&LossSums::loss), .weight = sum(&LossSums::weight)};
}

// Other ranks sum batch statistics with this one: it takes part, in the same order, with no samples.
void Trainer::empty_micro_step(bool accumulate) {
  Graph& graph = *bound(batch_size_).graph;
  graph.forward_empty();
  graph.backward_empty(accumulate, *synchronizer_);
}

void Trainer::update() {
  if (mean_ && weight_per_sample_ == 0 && !average_ranks_) divide_by_global_weight();
  gradient_norm_ = clip();
  optimizer_->step(network_->store().trainable_values(), network_->store().gradients());
  if (average_) average_->update();
  for (Piece& piece : pieces_) piece.epoch.loss += piece.window.loss, piece.epoch.weight += piece.window.weight;
}

// distributed.average samples: every sample of the step weighs the same, wherever it is. ranks: a micro-step gives its
// own mean, divided by the micro-steps of the window (the scripts' loss / accumulate), whatever their sizes.
double Trainer::denominator(int64_t step_in_epoch, int64_t batch) const {
  if (!mean_) return 1;
  const auto micro_steps = static_cast<double>(epoch_plan_.window_size(step_in_epoch));
  if (weight_per_sample_ == 0) return average_ranks_ ? micro_steps : 1;
  if (average_ranks_) return micro_steps * static_cast<double>(batch) * weight_per_sample_;
  return static_cast<double>(samples_of_step(step_in_epoch)) * weight_per_sample_;
}

LossSums Trainer::micro_step(const Batch& batch, int64_t piece, int64_t index, int64_t step_in_epoch, bool accumulate) {
  fault_.at_forward(step_);
  Bound& bound = this->bound(batch.count);
  Graph& graph = *bound.graph;
  const StepStream stream{.key = mix_key(config_.run.seed, static_cast<uint64_t>(ranks_.first + piece),
                                         static_cast<uint64_t>(step_), static_cast<uint64_t>(index)),
                          .torch = &generator_};
  graph.forward(batch.x, stream);
  const TensorView target = batch.labels != nullptr
                                ? TensorView{batch.labels, {Shape{batch.count}, 1, DType::i64}}
                                : TensorView{batch.targets, {Shape{batch.count, train_data_->target_width()}}};
  const double scale = loss_scaling_->factor() / denominator(step_in_epoch, batch.count);
  const LossSums sums = bound.loss->forward_backward(graph.output(), target, scale, graph.output_gradient());
  if (average_ranks_ && mean_ && weight_per_sample_ == 0 && sums.weight > 0)  // the weights are known only now
    backend_.optimizer_ops().scale(static_cast<size_t>(graph.output().numel()), graph.output_gradient(),
                                   static_cast<float>(1 / sums.weight));
  clock_.lap(StepPhase::forward);
  graph.backward(accumulate, *synchronizer_);
  clock_.lap(StepPhase::backward);
  return sums;
}

// Class weights and ignored targets: the denominator is known only after the forward passes of all ranks.
void Trainer::divide_by_global_weight() {
  double weight = sum_of_pieces(&Piece::window).weight;
  if (config_.distributed.sync) communicator_.all_reduce({&weight, 1}, ReduceOp::sum);
  if (weight == 0) return;  // nothing but ignored targets: the gradient is zero already
  const std::span<float> gradients = network_->store().gradients();
  backend_.optimizer_ops().scale(gradients.size(), gradients.data(), static_cast<float>(1 / weight));
}

// What the gradient is divided by: the samples of all ranks; without synchronisation each replica is on its own.
int64_t Trainer::samples_of_step(int64_t step_in_epoch) const {
  const EpochPlan& epoch = epoch_plan_;
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
