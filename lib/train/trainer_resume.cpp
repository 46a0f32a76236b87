// A training run taken up where a checkpoint left it (trainer_save.cpp): rank 0 reads and restores, the others hear of
// the state and get the arrays from it.
#include <algorithm>

#include "comm/run_agreed.h"
#include "comm/sum_tree.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "train/checkpoint/state_json.h"
#include "train/trainer.h"

namespace lockstep {

// Collective: what the run starts from. The returned checkpoint is rank 0's.
std::optional<Checkpoint> Trainer::take_up(const ResumeRequest& request) {
  const CheckpointFolder folder(log_.dir() + "/" + kCheckpointsName,
                                {.last = config_.checkpoint.keep,
                                 .every = config_.checkpoint.keep_every.value_or(0),
                                 .best = config_.checkpoint.keep_best});
  std::optional<Checkpoint> found;
  run_agreed(communicator_, [&] {
    if (communicator_.rank() != 0) return;
    found = find_checkpoint(request, folder, checkpoints());
    if (checkpoints()) {
      folder.prepare();
      writer_ = std::make_unique<CheckpointWriter>(folder, config_.checkpoint.background);
    }
  });
  const std::string json = broadcast_text(found ? to_json(found->state) : "", communicator_);
  run_agreed(communicator_, [&] {
    RunPosition at;
    if (!json.empty()) {
      resumed_ = parse_state(json, found ? found->path : "rank 0's checkpoint");
      at = run_position(*resumed_, plan_, request.allow_batch_change);
      step_ = at.step, epoch_ = at.epoch, position_ = at.position;
      saved_step_ = step_;
    }
    total_steps_ = lockstep::total_steps(plan_, at);
  });
  if (found) {
    resumed_from_ = found->path;
    log::info("resuming {} after {} steps, in epoch {}", found->path, step_, epoch_ + 1);
    if (const std::string changes = config_differences(found->config, resolved_); !changes.empty())
      log::info("the config differs from the checkpoint's: {}", changes);
  } else if (request.from == "auto") {
    log::info("no checkpoint in {} yet: the run starts anew", folder.dir());
  }
  return found;
}

// Collective; checkpoint: rank 0's.
void Trainer::restore(const Checkpoint* checkpoint) {
  run_agreed(communicator_, [&] {
    const State& state = *resumed_;
    if (state.text("optimizer.kind") != optimizer_->settings().kind)
      throw_error(
          "the checkpoint is of a run with optimizer {}, this one has {}: start from its weights with "
          "model.init_from instead",
          state.text("optimizer.kind"), optimizer_->settings().kind);
    optimizer_->set_step_count(state.integer("optimizer.steps"));
    learning_rate_->restore(state.part("schedule"));
    loss_scaling_->restore(state.part("loss_scale"));
    nonfinite_->restore(state.part("nonfinite"));
    const State noise = state.part("noise_scale"), judge = state.part("judge");
    if (noise_scale_ && !noise.values().empty()) noise_scale_->restore(noise);
    if (judge_ && !judge.values().empty()) judge_->restore(judge);
    stopped_ = state.flag("stopped_early");
    evaluated_ = judge_ && state.flag("evaluated");
    epoch_open_ = state.flag("epoch_open");
    evaluation_pending_ = evaluator_ && state.flag("evaluation_pending");
    validation_ = state.part("validation");
    if (checkpoint != nullptr) restore_arrays(*checkpoint);
  });
  broadcast_restored();
  restore_pieces(checkpoint);
}

void Trainer::restore_arrays(const Checkpoint& checkpoint) {
  ParameterStore& store = network_->store();
  const TensorFile& model = checkpoint.file("model");
  check_tensor_count(model, store.parameters().size() + store.buffers().size());
  read_parameter_tensors(model, store, "", store.values());
  std::vector<float> buffers(store.buffer_values().size());
  read_buffer_tensors(model, store, "", buffers);
  store.memory().upload(store.buffer_values(), buffers);
  const TensorFile& optimizer = checkpoint.file("optimizer");
  check_tensor_count(optimizer, store.trainable_parameters() * optimizer_->state().size());
  for (const StateArray& array : optimizer_->state())
    read_parameter_tensors(optimizer, store, "/" + std::string(array.name), array.values);
  if (average_) read_parameter_tensors(checkpoint.file("ema"), store, "", average_->values());
}

void Trainer::broadcast_restored() {
  broadcast_model(network_->store(), communicator_);
  const Memory& memory = backend_.memory();
  for (const StateArray& array : optimizer_->state()) broadcast_values(memory, array.values, communicator_);
  if (average_) broadcast_values(memory, average_->values(), communicator_);
  statistics_->restart();
}

// What (virtual) ranks have for themselves. Other ranks than those that saved share the epoch's loss so that its sum
// stays, and start from the statistics that the old ones would have agreed on.
void Trainer::restore_pieces(const Checkpoint* checkpoint) {
  const State& state = *resumed_;
  const std::vector<double>& losses = state.reals("pieces.loss");
  const std::vector<double>& weights = state.reals("pieces.weight");
  if (losses.size() != weights.size() || losses.empty())
    throw_error("saved state: {} losses and {} weights", losses.size(), weights.size());
  const bool same = static_cast<int64_t>(losses.size()) == ranks_.count;
  for (int64_t i = 0; same && i < ranks_.held; ++i) {
    const auto piece = static_cast<size_t>(ranks_.first + i);
    pieces_[static_cast<size_t>(i)].epoch = {.loss = losses[piece], .weight = weights[piece]};
  }
  if (!same && communicator_.rank() == 0) pieces_[0].epoch = {.loss = tree_sum(losses), .weight = tree_sum(weights)};

  const std::string generator = "generators." + std::to_string(communicator_.rank());
  if (state.contains(generator)) generator_.restore(state.text(generator));
  if (!same && !state.part("generators").values().empty() && communicator_.rank() == 0)
    log::warning(
        "the checkpoint's ranks drew dropout from PyTorch's generator (torch_stream); with another number of "
        "ranks those streams cannot be continued exactly");

  if (!same || !state.contains("pieces.samples") || statistics_->policy() != BatchNormPolicy::average) return;
  const size_t size = network_->store().buffer_values().size();
  std::vector<float> all(size * losses.size());
  run_agreed(communicator_, [&] {
    for (size_t piece = 0; checkpoint != nullptr && piece < losses.size(); ++piece)
      read_buffer_tensors(checkpoint->file("statistics"), network_->store(), std::to_string(piece) + "/",
                          std::span(all).subspan(piece * size, size));
    if (state.integers("pieces.samples").size() != losses.size()) throw_error("saved state: pieces.samples");
  });
  communicator_.broadcast(std::as_writable_bytes(std::span(all)), 0);
  const auto first = static_cast<size_t>(ranks_.first), held = static_cast<size_t>(ranks_.held);
  backend_.memory().upload(statistics_->all(), std::span(all).subspan(first * size, held * size));
  const auto& samples = state.integers("pieces.samples");
  std::copy_n(samples.begin() + static_cast<long>(first), held, statistics_->samples().begin());
}

std::optional<ResumedLog> Trainer::resumed_log() const {
  if (!resumed_) return std::nullopt;
  return ResumedLog{.events = resumed_->integer("log_events"), .step = step_, .checkpoint = resumed_from_};
}

}  // namespace lockstep
