// Steps that are recorded and started as a whole (backend/recorder.h). The last micro-step's recording goes on through
// the gradients' sums and the update, so a step without accumulation is one start. The host reads a step's losses when
// the next one is under way, and the device never waits for it.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "train/trainer.h"

namespace lockstep {

void Trainer::prepare_recordings() {
  const std::string& wanted = config_.device.cuda_graph;
  if (wanted == "off") return;
  Recorder* recorder = backend_.recorder();
  const std::string reason = recorder == nullptr ? "this run computes on no GPU" : why_not_recorded();
  if (reason.empty()) {
    recordings_ = std::make_unique<StepRecordings>(*recorder);
    recorder->begin_numbers();  // makes their memory, which no step then has to
    recorder->end_numbers();
  } else if (wanted == "on") {
    throw_error("device.cuda_graph: on: a step can't be recorded: {}; cuda_graph: auto goes on without", reason);
  }
  if (recorder != nullptr && communicator_.rank() == 0)
    log::info("{}", reason.empty() ? "steps are recorded as CUDA graphs"
                                   : fmt::format("steps are not recorded as CUDA graphs: {}", reason));
}

// What has the host wait or decide in the midst of a step. Empty: nothing.
std::string Trainer::why_not_recorded() const {
  if (ranks_.held > 1) return "a rank stands for several virtual ranks";
  if (config_.distributed.sync && communicator_.size() > 1 && !communicator_.sums_are_queued())
    return fmt::format("gradients are summed on the host ({})", communicator_.name());
  if (batch_statistics_) return "distributed.batch_norm: sync sums statistics on the host";
  if (loss_scaling_->active()) return "train.precision: fp16 looks for overflow before it decides on an update";
  if (nonfinite_->kind() == NonfinitePolicy::Kind::skip)
    return "train.on_nonfinite: skip looks at the gradients before it decides on an update";
  if (noise_scale_) return "log.noise_scale measures gradients on the host";
  if (mean_ && weight_per_sample_ == 0) return "the loss is divided by the targets' weights, which the host sums";
  if (optimizer_->numbers_per_parameter())
    return fmt::format("optimizer.kind: {} has numbers of its own for every parameter", config_.optimizer.kind);
  if (std::ranges::any_of(config_.model.layers, [](const LayerSpec& layer) { return layer.torch_stream; }))
    return "torch_stream draws dropout's masks on the host";
  return "";
}

// Where this rank has no samples in the last micro-step, a step is done piece by piece.
bool Trainer::recorded(int64_t step_in_epoch) const {
  if (recordings_ == nullptr) return false;
  const int64_t micro_steps = epoch_plan_.window_size(step_in_epoch);
  const int64_t last = step_in_epoch * plan_.spec().accumulate + micro_steps - 1;
  return epoch_plan_.local_count(communicator_.rank(), last) > 0;
}

void Trainer::recorded_micro_step(const MicroStep& work, bool last) {
  Graph& graph = *work.bound.graph;
  if (last) learning_rate_->apply(*optimizer_, step_, epoch_);
  const RecordedWork held{.graph = &graph,
                          .output = graph.output().data,
                          .x = work.x,
                          .targets = work.target.data,
                          .scale = work.scale,
                          .accumulate = work.accumulate,
                          .first_loss = !work.bound.used,
                          .new_parameters = graph.new_parameters(),
                          .update = last,
                          .laps = clock_.measuring() ? std::optional(clock_.laps()) : std::nullopt};
  const auto queue = [&] {
    forward(work);
    clock_.lap(StepPhase::forward);
    graph.backward(work.accumulate, *synchronizer_);
    clock_.lap(StepPhase::backward);
    if (!last) return;
    synchronizer_->finish();
    clock_.lap(StepPhase::communication);
    update();
  };
  const auto repeat = [&] {
    graph.repeated();
    clock_.repeat_lap(StepPhase::forward);
    clock_.repeat_lap(StepPhase::backward);
    if (!last) return;
    synchronizer_->repeat_window();
    clock_.repeat_lap(StepPhase::communication);
    update();
  };
  recordings_->run(held, work.stream.key, queue, repeat);
  clock_.trace_as("recorded");
  work.bound.used = true;
  if (last) send_losses();
}

void Trainer::end_recorded_step() {
  settle_step();  // the one before
  for (Bound& entry : bound_) {
    entry.unsettled = std::exchange(entry.used, false);
    entry.sent = false;
  }
  unsettled_ = step_;
}

void Trainer::settle_step() {
  if (!unsettled_) return;
  LossSums& window = pieces_.front().window;
  window = {};
  for (Bound& entry : bound_) {
    if (!std::exchange(entry.unsettled, false)) continue;
    const LossSums sums = entry.loss->take_sums();
    window.loss += sums.loss, window.weight += sums.weight;
  }
  nonfinite_->observe(*std::exchange(unsettled_, std::nullopt), window.loss);
  count_losses();
}

}  // namespace lockstep
