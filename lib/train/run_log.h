// What a run leaves behind: <dir>/config.yaml, <dir>/metrics.jsonl (one JSON object per line), <dir>/stdout and
// TensorBoard's events, and the lines people read on the console. Written by rank 0 only. The events and their fields
// are listed in docs/metrics.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/noise_scale.h"
#include "train/best_model.h"
#include "train/evaluator.h"
#include "train/event_file.h"
#include "train/progress.h"
#include "train/step_clock.h"

namespace lockstep {

struct RankStep {
  double loss = 0;                            // local mean over the rank's samples of the step; NaN without samples
  std::vector<std::vector<int64_t>> indices;  // one list per micro-step, when asked for
};

struct StepRecord {
  int64_t step = 0, epoch = 0;  // optimizer steps from 0; epochs from 0
  int64_t steps_per_epoch = 0, step_in_epoch = 0;
  double loss = 0, lr = 0;
  int64_t samples = 0;                 // of this step, over all ranks
  int64_t samples_seen = 0;            // by all steps of the run up to this one
  double samples_per_second = 0;       // since the line before
  double gradient_norm = -1;           // before clipping; negative: not computed
  double loss_scale = 0;               // of the next step; 0: none (not fp16)
  int64_t skipped = 0;                 // steps left out so far because their gradients overflowed
  std::optional<NoiseEstimate> noise;  // log.noise_scale
  TimeSplit time;                      // of the steps measured since the line before
  std::vector<RankStep> ranks;         // empty unless asked for
};

struct EvalRecord {
  int64_t step = 0, epoch = 0;
  const Metrics& metrics;
  double seconds = 0;
  bool best = false;  // so far
};

struct EndRecord {
  int64_t steps = 0;
  double seconds = 0;
  bool stopped_early = false;
  std::optional<BestMetric> best;  // with a validation
  std::string model_sha256;        // of the final weights and buffers, see train/model_digest.h
};

// A run that goes on where a checkpoint was made.
struct ResumedLog {
  int64_t events = 0;  // of metrics.jsonl that the checkpoint's run had written: later ones are dropped
  int64_t step = 0;
  std::string checkpoint;
};

struct StartRecord {
  std::string config_yaml;
  int world_size = 1;
  int64_t parameters = 0;
  int64_t total_steps = 0;                   // of the whole run
  int64_t samples = 0, steps_per_epoch = 0;  // of the training set; of a whole epoch
  std::string arithmetic;
  std::vector<std::pair<std::string, std::string>> environment;  // see environment.h
  bool tensorboard = false;
  std::optional<ResumedLog> resumed;
};

class RunLog {
 public:
  // active false (ranks other than 0, or a dry run): every call does nothing.
  RunLog(const std::string& dir, bool active);
  ~RunLog();
  // Opens the files: anew, or, for a resumed run, to go on in them.
  void start(const StartRecord& record);
  void step(const StepRecord& record);
  // After every step, for who watches: steps done in all, and the samples of this one.
  void progress(int64_t steps, int64_t epoch, int64_t samples) { progress_.step(steps, epoch, samples); }
  void eval(const EvalRecord& record);
  void probe(const std::string& when, int64_t step, const std::string& text, const std::vector<double>& per_rank);
  void finish(const EndRecord& record);
  // The run was asked to end after so many steps; saved: and can be gone on with.
  void stopped(int64_t steps, const std::string& reason, bool saved);
  // Of steps, validations and probes, so far; the same whatever the number of ranks and resumes.
  int64_t events() const { return events_; }
  const std::string& dir() const { return dir_; }

 private:
  void open(const std::optional<ResumedLog>& resumed);
  void write(const nlohmann::json& event);
  void add_scalars(const StepRecord& record);
  void add_scalars(const EvalRecord& record);
  void time(const StepRecord& record);
  std::string dir_;
  int file_ = -1;
  std::unique_ptr<EventFile> tensorboard_;  // null: not wanted
  Progress progress_;
  bool active_;
  int64_t events_ = 0;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep
