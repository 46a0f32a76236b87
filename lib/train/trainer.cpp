#include "train/trainer.h"

#include <algorithm>

#include "core/log.h"
#include "dist/replica_check.h"
#include "train/environment.h"
#include "train/model_digest.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

RunResult Trainer::run() {
  RunResult result;
  if (finished()) {
    log::info("{}: the run has ended after {} steps, nothing is left to train", resumed_from_, step_);
    add_outcome(result);
    return result;
  }
  auto environment = environment_facts(backend_, communicator_);
  if (!data_place_.empty()) environment.emplace_back("training set", data_place_);
  if (sharded_) environment.emplace_back("optimizer step", fmt::format("shared by {} ranks", communicator_.size()));
  log_.start({.config_yaml = resolved_,
              .world_size = communicator_.size(),
              .parameters = network_->store().total_parameters(),
              .total_steps = total_steps_,
              .samples = plan_.spec().samples,
              .steps_per_epoch = plan_.epoch().steps(),
              .arithmetic = arithmetic_,
              .environment = environment,
              .tensorboard = config_.log.tensorboard,
              .resumed = resumed_log()});
  if (!data_place_.empty()) log::info("{}", data_place_);
  log_probes("before broadcast", false);
  if (!resumed_) {
    broadcast_model(network_->store(), communicator_);
    statistics_->restart();
    if (average_) average_->restart();
  }
  log_probes("after broadcast", false);

  const Clock::time_point start = Clock::now();
  while (!finished() && !interrupted_) result.epochs.push_back(train_epoch());
  if (trace_) trace_->end();
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
    if (!traced_step(k)) break;
    result.samples += epoch_plan_.step_samples(k);
    log_.progress(step_, epoch_, epoch_plan_.step_samples(k));
    if (replica_check_due()) check_parameters_equal(network_->store(), communicator_, step_);
    if (log_due()) log_step(k);
    if (evaluation_due_after_step()) evaluate(result);
    if (k + 1 < steps && !stopped_ && !interrupted_ && checkpoint_due_after_step()) save();
  }
  result.seconds = seconds_since(start) - evaluation_seconds_;
  if (!interrupted_) end_epoch(result);
  return result;
}

bool Trainer::traced_step(int64_t step_in_epoch) {
  if (trace_) trace_->before_step(step_);
  const TraceSpan span(trace_row(), TraceKind::step, "step", step_);
  return train_step(step_in_epoch);
}

void Trainer::end_epoch(EpochResult& result) {
  settle_step();
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
  loader_->start(epoch_plan_.micro_steps() * ranks_.held, [this] {
    order_->set_epoch(epoch_, own_position());
    if (augmentation_) augmentation_->set_epoch(epoch_);
  });
}

// At a place where no sums are under way. All ranks ask equally often.
bool Trainer::asked_to_end() {
  if (stop_ && !interrupted_) interrupted_ = stop_->poll();
  return interrupted_.has_value();
}

}  // namespace lockstep
