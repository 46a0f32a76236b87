// The training loop: run -> train_epoch -> train_step, and evaluation between. It knows samples, windows and steps; how
// gradients travel is the synchroniser's, where data comes from the loader's, how numbers are computed the backend's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "core/fault.h"
#include "core/rng.h"
#include "data/augmentation.h"
#include "data/data_plan.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/step_order.h"
#include "dist/batch_norm_sync.h"
#include "dist/gradient_synchronizer.h"
#include "dist/noise_scale.h"
#include "dist/running_statistics.h"
#include "dist/sharded_update.h"
#include "dist/virtual_ranks.h"
#include "nn/network.h"
#include "optim/clip.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "optim/parameter_groups.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/model_tensors.h"
#include "train/config.h"
#include "train/evaluator.h"
#include "train/kept_data.h"
#include "train/learning_rate.h"
#include "train/loss_scaling.h"
#include "train/memory_estimate.h"
#include "train/nonfinite.h"
#include "train/probe.h"
#include "train/resume.h"
#include "train/run_log.h"
#include "train/run_trace.h"
#include "train/step_clock.h"
#include "train/step_recordings.h"
#include "train/stop_request.h"
#include "train/validation_judge.h"

namespace lockstep {

struct EpochResult {
  int64_t epoch = 0, samples = 0;     // samples trained on, over all ranks
  double train_loss = 0;              // mean over the epoch's samples, each at the parameters of its step
  double seconds = 0;                 // training only, without evaluation
  std::optional<Metrics> validation;  // the last one of the epoch
};

struct RunResult {
  int64_t steps = 0;
  std::vector<EpochResult> epochs;
  bool stopped_early = false;
  std::optional<BestMetric> best;          // with a validation
  std::optional<std::string> interrupted;  // why the run was asked to end before its end (train/stop_request.h)
  bool saved = false;                      // then: it can be gone on with
};

// Asked once the data is read, on every rank; throws Error where what is still to be allocated won't fit.
using MemoryCheck = std::function<void(const DataFacts&)>;

class Trainer {
 public:
  // Builds everything and checks it; throws Error for whatever is wrong before the first step. The config's model is
  // expanded already; all references must outlive the trainer.
  Trainer(const Config& config, Backend& backend, Communicator& communicator, RunLog& log,
          const ResumeRequest& resume = {}, std::optional<StopSources> stop = std::nullopt,
          const MemoryCheck& check_memory = {});
  ~Trainer();

  RunResult run();
  const DataPlan& plan() const { return plan_; }
  int64_t steps_done() const { return step_; }  // those before a resume too
  int64_t total_steps() const { return total_steps_; }
  const std::string& arithmetic() const { return arithmetic_; }
  Network& network() { return *network_; }
  GradientSynchronizer& synchronizer() { return *synchronizer_; }
  const LossScaling& loss_scaling() const { return *loss_scaling_; }
  const StepRecordings* recordings() const { return recordings_.get(); }  // null: steps are not recorded
  const Optimizer& optimizer() const { return *optimizer_; }
  bool sharded() const { return sharded_ != nullptr; }  // each rank updates its share of the parameters
  // One optimizer step of the current epoch, for measurements of the bare step. run() does the rest. position: in the
  // epoch's list, where a step ended; steps count from there.
  void begin_epoch(int64_t epoch, int64_t position = 0);
  // False: the run was asked to end and the step not made; nothing of it has changed the state of the run.
  bool train_step(int64_t step_in_epoch);

 private:
  struct Bound {  // what a micro-batch of one size needs
    int64_t count;
    Graph* graph;
    std::unique_ptr<LossPlan> loss;
    bool used = false, sent = false;  // in this window: its loss has sums, and they are on their way
    bool unsettled = false;           // likewise in the recorded step before
  };

  struct Piece {             // a virtual rank that this rank stands for
    LossSums window, epoch;  // local sums of the last step and of the epoch
    std::vector<std::vector<int64_t>> indices;
  };

  struct MicroStep {  // what the device is asked for
    Bound& bound;
    const float* x;
    TensorView target;
    double scale;  // of the loss
    StepStream stream;
    bool accumulate;
  };

  struct StepStart {    // what earlier micro-steps of a step change and its abandonment puts back
    Buffer statistics;  // in the backend's memory
    std::vector<int64_t> samples;
    std::optional<Generator> generator;  // none: there is only one micro-step
  };

  // trainer_build.cpp: before the first step.
  void build();
  void count_steps();
  void build_network();
  void lay_out();
  void load_initial_weights();
  void build_on_parameters();
  void make_loader(std::span<const KeepFacts> keep);
  void attach_trace();
  // trainer.cpp: the loop.
  bool traced_step(int64_t step_in_epoch);
  TraceRow* trace_row() const { return trace_ ? &trace_->compute() : nullptr; }
  bool finished() const { return stopped_ || (step_ >= total_steps_ && !epoch_open_); }
  int64_t own_position() const;
  void add_outcome(RunResult& result) const;
  RunResult interrupted_result(RunResult result);
  EpochResult train_epoch();
  void end_epoch(EpochResult& result);
  int64_t samples_of_step(int64_t step_in_epoch) const;
  Bound& bound(int64_t count);
  double denominator(int64_t step_in_epoch, int64_t batch) const;  // of the loss of a micro-step of `batch` samples
  bool asked_to_end();
  void keep_step_start(int64_t step_in_epoch);
  void go_back_to_step_start();
  void end_step(int64_t step_in_epoch);
  bool window(int64_t piece, int64_t step_in_epoch, bool recorded);
  void empty_micro_step(bool accumulate);
  const Batch& next_batch();
  TensorView target_of(const Batch& batch) const;
  void send_losses();
  void take_losses(LossSums& window);
  void count_losses();
  void divide_by_own_weight(Bound& bound, int64_t piece);
  MicroStep upload(const Batch& batch, int64_t piece, int64_t index, int64_t step_in_epoch, bool accumulate);
  void forward(const MicroStep& work);
  void micro_step(const MicroStep& work, int64_t piece, bool last);
  LossSums sum_of_pieces(LossSums Piece::*sums);
  void update();
  void update_parameters();
  void divide_by_global_weight();
  void clip();
  // trainer_record.cpp: steps that are recorded.
  void prepare_recordings();
  std::string why_not_recorded() const;
  bool recorded(int64_t step_in_epoch) const;
  void recorded_micro_step(const MicroStep& work, bool last);
  void end_recorded_step();
  void settle_step();
  // trainer_log.cpp: what is told, and when.
  bool log_due() const { return log_due_after(step_); }  // after the step just done
  bool log_due_after(int64_t steps) const;
  bool replica_check_due() const;
  bool evaluation_due_after_step() const;
  bool evaluation_due_after_epoch(int64_t epoch) const;
  void log_step(int64_t step_in_epoch);
  std::vector<RankStep> gather_rank_steps();
  void evaluate(EpochResult& result);
  void log_probes(const char* when, bool gradients_too);
  // trainer_save.cpp: what is saved, and when.
  bool checkpoints() const { return config_.checkpoint.every.kind != Period::Kind::never; }
  bool checkpoint_due_after_step() const;
  bool checkpoint_due_after_epoch() const;
  void save();
  void finish_saving();
  void check_space() const;
  void tell_failed_checkpoints();
  Snapshot snapshot();
  using MakeCopy = std::function<Copy(std::span<const float>)>;  // of the backend's memory
  void add_tensors(Snapshot& snapshot, const Copy& buffers, const MakeCopy& copy) const;
  State replicated_state() const;
  void add_state_of_pieces(State& state);
  void add_statistics_of_pieces(Snapshot& snapshot);
  // trainer_resume.cpp: how it comes back.
  std::optional<Checkpoint> take_up(const ResumeRequest& request);
  void restore(const Checkpoint* checkpoint);
  void restore_arrays(const Checkpoint& checkpoint);
  void restore_pieces(const Checkpoint* checkpoint);
  void broadcast_restored();
  std::optional<ResumedLog> resumed_log() const;

  const Config& config_;
  Backend& backend_;
  std::unique_ptr<RunTrace> trace_;  // log.trace; null: none
  Communicator& communicator_;       // through the trace
  RunLog& log_;
  const int exceptions_;        // in flight when this was made
  const std::string resolved_;  // the config as text
  Fault fault_;

  Generator generator_;         // the script's global generator: data, then initial weights, then order
  uint64_t initial_words_ = 0;  // drawn from it before the first step
  std::unique_ptr<const Dataset> train_data_, val_data_;
  LossSpec loss_spec_;
  int64_t batch_size_ = 0;
  std::string arithmetic_;
  VirtualRanks ranks_;
  DataPlan plan_;
  EpochPlan epoch_plan_;  // of the current epoch, or of its rest after a resume
  std::unique_ptr<CommunicatorReducer>
      batch_statistics_;  // of all ranks; null: each rank's own, or one rank, or no batch norm
  std::unique_ptr<Network> network_;
  std::unique_ptr<ShardedUpdate> sharded_;  // distributed.sharded_update; null: every rank updates everything
  std::unique_ptr<GradientSynchronizer> synchronizer_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<RunningStatistics> statistics_;
  std::unique_ptr<LearningRate> learning_rate_;
  std::unique_ptr<NoiseScale> noise_scale_;  // log.noise_scale; null: not measured
  std::unique_ptr<WeightAverage> average_;   // train.ema; null: none
  std::unique_ptr<StepOrder> order_;
  std::unique_ptr<Augmentation> augmentation_;  // data.augmentation; null: none
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<BatchLoader> loader_;
  std::string data_place_;       // of the training set, for the log; empty on a CPU
  int64_t batches_ordered_ = 0;  // by the loader, in its thread
  std::unique_ptr<NonfinitePolicy> nonfinite_;
  std::unique_ptr<LossScaling> loss_scaling_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<ValidationJudge> judge_;
  std::vector<Probe> probes_;
  std::vector<Bound> bound_;
  std::unique_ptr<StepRecordings> recordings_;  // null: steps are not recorded
  std::optional<int64_t> unsettled_;            // the recorded step whose losses have not been looked at
  std::vector<ParameterRange> slices_;          // what clipping takes norms over
  std::optional<NormClip> norm_clip_;           // train.clip_norm
  bool mean_ = true;                            // train.reduction
  bool average_ranks_ = false;                  // distributed.average
  double weight_per_sample_ = 0;                // of the loss; 0: depends on the targets, known after the forward pass

  int64_t step_ = 0, epoch_ = 0, total_steps_ = 0;
  int64_t position_ = 0;  // in the epoch's list: positions consumed
  int64_t first_step_ = 0,
          step_in_epoch_ = -1;       // of the epoch: steps before epoch_plan_; the last one done, from there
  bool epoch_open_ = false;          // what comes after an epoch's last step is still to be done
  bool evaluation_pending_ = false;  // the one after the last step was cut off
  bool best_pending_ = false;        // the model is the best so far and not saved yet
  std::optional<int64_t> saved_step_;
  std::optional<State> resumed_;  // what the run was taken up with
  std::string resumed_from_;
  State validation_;  // the last one's numbers
  bool evaluated_ = false;
  bool stopped_ = false;                    // early, on all ranks after the same step
  std::unique_ptr<StopRequest> stop_;       // null: nobody asks
  std::optional<std::string> interrupted_;  // by it
  StepStart step_start_;
  std::vector<Piece> pieces_;
  StepClock clock_{backend_.make_stopwatch(), [this] { backend_.synchronize(); }};
  int64_t samples_since_log_ = 0;
  std::chrono::steady_clock::time_point last_log_;
  double evaluation_seconds_ = 0;  // inside the current log interval, not counted as training time
  CopyPool copies_;
  std::unique_ptr<CheckpointWriter> writer_;  // of rank 0; the last to come and the first to go, as it reads the rest
};

}  // namespace lockstep
