// What of a training run is saved, and when; trainer_resume.cpp takes it back. State that all ranks hold alike is
// written from rank 0's copy; what a (virtual) rank has for itself (its share of the epoch's loss, running statistics,
// a generator: a few KB; of a sharded update the optimizer's state) is gathered there first, so that a checkpoint has
// one writer and is the same file by file on any number of ranks that make the same virtual ones.
#include <algorithm>

#include "comm/gather.h"
#include "comm/run_agreed.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/log.h"
#include "train/checkpoint/free_space.h"
#include "train/trainer.h"

namespace lockstep {
bool Trainer::checkpoint_due_after_step() const {
  if (!checkpoints()) return false;
  if (best_pending_ && config_.checkpoint.keep_best) return true;
  const Period& every = config_.checkpoint.every;
  return every.kind == Period::Kind::steps && step_ % every.n == 0;
}

bool Trainer::checkpoint_due_after_epoch() const {
  const Period& every = config_.checkpoint.every;
  return every.kind == Period::Kind::epochs && epoch_ % every.n == 0;
}

// Collective. Rank 0's disk is busy while training goes on; what went wrong there is told at the next checkpoint.
void Trainer::save() {
  settle_step();
  if (saved_step_ == step_ && !best_pending_) return;
  const TraceSpan span(trace_row(), TraceKind::phase, "checkpoint");
  communicator_.activity().saving(std::max<int64_t>(step_ - 1, 0));
  double bad = nonfinite_->flag();
  communicator_.all_reduce({&bad, 1}, ReduceOp::sum);
  nonfinite_->stop_if_bad(bad, 0, step_ - 1);  // a model that is broken replaces no good one
  tell_failed_checkpoints();
  fault_.at_save(step_);
  Snapshot made = snapshot();
  if (writer_) writer_->write(std::move(made), best_pending_);
  saved_step_ = step_;
  best_pending_ = false;
  communicator_.activity().step(step_);
}

void Trainer::finish_saving() {
  if (!checkpoints()) return;
  communicator_.activity().saving(std::max<int64_t>(step_ - 1, 0));
  tell_failed_checkpoints();
}

// Waits for the checkpoint under way. checkpoint.on_error says whether one that could not be written ends the run.
void Trainer::tell_failed_checkpoints() {
  std::string failure;
  if (writer_) {
    writer_->wait();
    failure = writer_->take_failure().value_or("");
  }
  failure = broadcast_text(failure, communicator_);
  if (failure.empty()) return;
  if (config_.checkpoint.on_error == "stop") throw AgreedFailure(failure);
  if (writer_) log::warning("{}; training goes on without it (checkpoint.on_error: warn)", failure);
}

State Trainer::replicated_state() const {
  State state;
  state.set("step", step_);
  state.set("epoch", epoch_);
  state.set("position", position_);
  state.set("stopped_early", stopped_);
  state.set("evaluated", evaluated_);
  state.set("epoch_open", epoch_open_);
  state.set("evaluation_pending", evaluation_pending_);
  state.set("samples", plan_.spec().samples);
  const std::span<const int64_t> sample = train_data_->sample_shape().dims();
  state.set("sample_shape", std::vector<int64_t>(sample.begin(), sample.end()));
  state.set("world_size", plan_.spec().world_size);
  state.set("batch_size", plan_.spec().batch_size);
  state.set("accumulate", plan_.spec().accumulate);
  state.set("global_batch", plan_.epoch().global_batch());
  state.set("log_events", log_.events());
  state.set("build", build_info() + ", " + backend_.libraries());
  state.set("optimizer.kind", optimizer_->settings().kind);
  state.set("optimizer.steps", optimizer_->step_count());
  state.add("schedule", learning_rate_->state());
  state.add("loss_scale", loss_scaling_->state());
  state.add("nonfinite", nonfinite_->state());
  if (noise_scale_) state.add("noise_scale", noise_scale_->state());
  if (judge_) state.add("judge", judge_->state());
  state.add("validation", validation_);
  return state;
}

void Trainer::add_state_of_pieces(State& state) {
  std::vector<double> losses, weights;
  for (const Piece& piece : pieces_) {
    losses.push_back(piece.epoch.loss);
    weights.push_back(piece.epoch.weight);
  }
  state.set("pieces.loss", gather_values<double>(losses, communicator_));
  state.set("pieces.weight", gather_values<double>(weights, communicator_));
  // Layers that draw from PyTorch's generator leave it in another place on every rank; mostly nothing draws from it.
  const std::string mine = generator_.words() == initial_words_ ? "" : generator_.state();
  const std::vector<std::string> generators = gather_texts(mine, communicator_);
  for (size_t rank = 0; rank < generators.size(); ++rank) {
    if (!generators[rank].empty()) state.set("generators." + std::to_string(rank), generators[rank]);
  }
}

// distributed.batch_norm average: every (virtual) rank's own statistics count. Else the agreed ones say it all.
void Trainer::add_statistics_of_pieces(Snapshot& snapshot) {
  if (statistics_->policy() != BatchNormPolicy::average || network_->store().buffers().empty()) return;
  snapshot.state.set("pieces.samples", gather_values<int64_t>(statistics_->samples(), communicator_));
  const std::vector<float> own = backend_.memory().downloaded(statistics_->all());
  const std::vector<float> all = gather_values<float>(own, communicator_);
  const size_t size = network_->store().buffer_values().size();
  for (size_t piece = 0; piece * size < all.size(); ++piece)
    add_buffer_tensors(network_->store(), copies_.copy(std::span(all).subspan(piece * size, size)),
                       std::to_string(piece) + "/", snapshot.tensors["statistics"]);
}

// Collective; complete on rank 0.
Snapshot Trainer::snapshot() {
  Snapshot snapshot{.step = step_, .state = replicated_state(), .config = resolved_, .tensors = {}};
  add_state_of_pieces(snapshot.state);
  if (sharded_) {
    for (const StateArray& array : optimizer_->state()) sharded_->gather(array.values);
  }
  const std::vector<float> buffers = statistics_->agreed();
  add_statistics_of_pieces(snapshot);
  if (writer_)
    add_tensors(snapshot, copies_.copy(buffers),
                [this](std::span<const float> values) { return copies_.copy(backend_.memory(), values); });
  return snapshot;
}

void Trainer::add_tensors(Snapshot& snapshot, const Copy& buffers, const MakeCopy& copy) const {
  const ParameterStore& store = network_->store();
  std::vector<TensorSource>& model = snapshot.tensors["model"];
  add_parameter_tensors(store, copy(store.values()), "", model);
  add_buffer_tensors(store, buffers, "", model);
  std::vector<TensorSource>& optimizer = snapshot.tensors["optimizer"];
  for (const StateArray& array : optimizer_->state())
    add_parameter_tensors(store, copy(array.values), "/" + std::string(array.name), optimizer);
  if (average_) {
    add_parameter_tensors(store, copy(average_->values()), "", snapshot.tensors["ema"]);
    add_buffer_tensors(store, buffers, "", snapshot.tensors["ema"]);
  }
}

// Rank 0, before the first step: sizes only, nothing is copied. As many as are kept, the best one and the one being
// written.
void Trainer::check_space() const {
  Snapshot snapshot{.step = 0, .state = replicated_state(), .config = resolved_, .tensors = {}};
  const auto size_only = [](std::span<const float> values) { return Copy{{}, values}; };
  add_tensors(snapshot, size_only(network_->store().buffer_values()), size_only);
  const int64_t count = config_.checkpoint.keep + (config_.checkpoint.keep_best && evaluator_ ? 1 : 0) + 1;
  if (const auto text = space_shortage(log_.dir(), checkpoint_bytes(snapshot), count)) log::warning("{}", *text);
}

}  // namespace lockstep
