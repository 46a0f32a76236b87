// One optimizer step: a window of micro-steps for each virtual rank of this rank, then the update. On a GPU all of it
// is queued; the host waits where it needs a number, which is once a step for the loss.
#include <algorithm>
#include <utility>

#include "comm/sum_tree.h"
#include "core/counter_rng.h"
#include "train/trainer.h"

namespace lockstep {

Trainer::Bound& Trainer::bound(int64_t count) {
  for (Bound& entry : bound_) {
    if (entry.count == count) return entry;
  }
  Graph& graph = network_->graph(Phase::training, count);
  const int64_t outputs = network_->output_shape().numel();
  bound_.push_back({count, &graph, backend_.plan_loss(loss_spec_, count, outputs)});
  return bound_.back();
}

void Trainer::keep_step_start(int64_t step_in_epoch) {
  step_start_.generator.reset();
  if (!stop_ || epoch_plan_.window_size(step_in_epoch) * ranks_.held == 1) return;
  backend_.memory().copy(step_start_.statistics.as<float>(), statistics_->all());
  std::ranges::copy(statistics_->samples(), step_start_.samples.begin());
  step_start_.generator = generator_;
}

void Trainer::go_back_to_step_start() {
  if (!step_start_.generator) return;
  backend_.memory().copy(statistics_->all(), step_start_.statistics.as<float>());
  std::ranges::copy(step_start_.samples, statistics_->samples().begin());
  generator_ = *step_start_.generator;
}

bool Trainer::train_step(int64_t step_in_epoch) {
  communicator_.activity().step(step_);
  fault_.at_step(step_);
  nonfinite_->begin_step(step_);
  clock_.begin_step(step_, log_due_after(step_ + 1));
  const bool recorded = this->recorded(step_in_epoch);
  if (!recorded) settle_step();
  if (noise_scale_) noise_scale_->begin_step(log_due_after(step_ + 1));
  keep_step_start(step_in_epoch);
  for (int64_t piece = 0; piece < ranks_.held; ++piece) {
    if (window(piece, step_in_epoch, recorded)) continue;
    go_back_to_step_start();
    return false;
  }
  recorded ? end_recorded_step() : end_step(step_in_epoch);
  clock_.lap(StepPhase::optimizer);
  samples_since_log_ += epoch_plan_.step_samples(step_in_epoch);
  position_ = epoch_plan_.position_after(step_in_epoch);
  step_in_epoch_ = step_in_epoch;
  ++step_;
  return true;
}

// Its losses are looked at before the update.
void Trainer::end_step(int64_t step_in_epoch) {
  if (noise_scale_)  // with mean_ the arena holds the sum divided by the samples
    noise_scale_->end_step(network_->store().gradients(), epoch_plan_.step_samples(step_in_epoch), mean_,
                           loss_scaling_->factor());
  nonfinite_->observe(step_, sum_of_pieces(&Piece::window).loss);
  learning_rate_->apply(*optimizer_, step_, epoch_);
  const bool overflowed = loss_scaling_->overflowed(step_);
  if (nonfinite_->skip(step_, backend_.optimizer_ops(), overflowed) || overflowed) return;
  update();
  count_losses();
}

// The accumulation window of one virtual rank. False: the run is to end, the window was left.
bool Trainer::window(int64_t piece, int64_t step_in_epoch, bool recorded) {
  const int64_t micro_steps = epoch_plan_.window_size(step_in_epoch);
  Piece& mine = pieces_[static_cast<size_t>(piece)];
  if (!recorded) mine.window = {};  // else the last step's is still to come
  mine.indices.clear();
  statistics_->enter(piece);
  bool accumulate = false;
  int64_t samples = 0;
  for (int64_t i = 0; i < micro_steps; ++i) {
    if (asked_to_end()) return false;
    synchronizer_->begin_micro_step(static_cast<int>(i), static_cast<int>(micro_steps));
    const Batch& batch = next_batch();
    clock_.lap(StepPhase::data);
    if (config_.log.indices) mine.indices.emplace_back(batch.rows.begin(), batch.rows.end());
    if (batch.count == 0) {
      if (batch_statistics_ == nullptr) continue;
      empty_micro_step(accumulate);
      accumulate = true;
      continue;
    }
    nonfinite_->add_rows(batch.rows);
    const MicroStep work = upload(batch, piece, i, step_in_epoch, accumulate);
    const bool last = i + 1 == micro_steps;
    recorded ? recorded_micro_step(work, last) : micro_step(work, piece, last);
    accumulate = true;
    samples += batch.count;
  }
  statistics_->leave(piece, samples);
  if (recorded) return true;  // the last micro-step did the rest
  // Of a window that ends without samples: behind the sums the losses would wait for other ranks.
  send_losses();
  if (!accumulate) backend_.memory().zero(network_->store().gradients());
  synchronizer_->finish();
  clock_.lap(StepPhase::communication);
  take_losses(mine.window);
  if (noise_scale_) noise_scale_->end_window(samples);
  return true;
}

void Trainer::send_losses() {
  for (Bound& entry : bound_) {
    if (entry.used && !std::exchange(entry.sent, true)) entry.loss->send_sums();
  }
}

// Of the window. Only here does the host wait for the device, and only for the last forward pass: what follows it has
// been asked for already.
void Trainer::take_losses(LossSums& window) {
  for (Bound& entry : bound_) {
    if (!std::exchange(entry.used, false)) continue;
    entry.sent = false;
    const LossSums sums = entry.loss->take_sums();
    window.loss += sums.loss, window.weight += sums.weight;
  }
}

void Trainer::count_losses() {
  for (Piece& piece : pieces_) piece.epoch.loss += piece.window.loss, piece.epoch.weight += piece.window.weight;
}

// The loader's memory is its own again once the last batch has gone to the device.
const Batch& Trainer::next_batch() {
  feed_->release();
  return loader_->next();
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
  clip();
  update_parameters();
  if (average_) average_->update();
}

void Trainer::update_parameters() {
  ParameterStore& store = network_->store();
  if (!sharded_) return optimizer_->step(store.trainable_values(), store.gradients());
  sharded_->begin(store.gradients());
  clock_.lap(StepPhase::communication);
  sharded_->step(*optimizer_, store.trainable_values());
  clock_.lap(StepPhase::optimizer);
  sharded_->end();
  clock_.lap(StepPhase::communication);
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

Trainer::MicroStep Trainer::upload(const Batch& batch, int64_t piece, int64_t index, int64_t step_in_epoch,
                                   bool accumulate) {
  fault_.at_forward(step_);
  TensorView target = target_of(batch);
  const size_t x_bytes = static_cast<size_t>(batch.count * train_data_->sample_shape().numel()) * sizeof(float);
  const Feed::Batch fed = batch.picked != nullptr ? feed_->gather({batch.picked, batch.rows.size()})
                                                  : feed_->upload(batch.x, x_bytes, target.data, target.desc.bytes());
  target.data = const_cast<void*>(fed.targets);
  return {.bound = bound(batch.count),
          .x = static_cast<const float*>(fed.x),
          .target = target,
          .scale = loss_scaling_->factor() / denominator(step_in_epoch, batch.count),
          .stream = {.key = mix_key(config_.run.seed, static_cast<uint64_t>(ranks_.first + piece),
                                    static_cast<uint64_t>(step_), static_cast<uint64_t>(index)),
                     .torch = &generator_},
          .accumulate = accumulate};
}

void Trainer::forward(const MicroStep& work) {
  Graph& graph = *work.bound.graph;
  graph.forward(work.x, work.stream);
  work.bound.loss->add_forward_backward(graph.output(), work.target, work.scale, graph.output_gradient(),
                                        !work.bound.used);
}

void Trainer::micro_step(const MicroStep& work, int64_t piece, bool last) {
  forward(work);
  work.bound.used = true;
  if (average_ranks_ && mean_ && weight_per_sample_ == 0) divide_by_own_weight(work.bound, piece);
  if (last) send_losses();  // they come to the host beside the backward pass
  clock_.lap(StepPhase::forward);
  work.bound.graph->backward(work.accumulate, *synchronizer_);
  clock_.lap(StepPhase::backward);
}

TensorView Trainer::target_of(const Batch& batch) const {
  return train_data_->target_kind() == TargetKind::labels
             ? TensorView{batch.labels, {Shape{batch.count}, 1, DType::i64}}
             : TensorView{batch.targets, {Shape{batch.count, train_data_->target_width()}}};
}

// A micro-step's mean by class weights, which are known only now: the host waits for them.
void Trainer::divide_by_own_weight(Bound& bound, int64_t piece) {
  bound.loss->send_sums();
  const LossSums sums = bound.loss->take_sums();
  bound.used = false;
  LossSums& window = pieces_[static_cast<size_t>(piece)].window;
  window.loss += sums.loss, window.weight += sums.weight;
  if (sums.weight > 0)
    backend_.optimizer_ops().scale(static_cast<size_t>(bound.graph->output().numel()), bound.graph->output_gradient(),
                                   static_cast<float>(1 / sums.weight));
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

void Trainer::clip() {
  const std::span<float> gradients = network_->store().gradients();
  if (norm_clip_) norm_clip_->clip(gradients);
  if (config_.train.clip_value) clip_by_value(backend_.optimizer_ops(), slices_, gradients, *config_.train.clip_value);
}

}  // namespace lockstep
