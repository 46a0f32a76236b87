// What a run's metrics.jsonl says of it while it goes on: read piece by piece, as far as its lines are whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct RunStatus {
  std::string state = "waiting";  // waiting (nothing written yet), running, ended, stopped (asked to end)
  int world_size = 0;
  int64_t step = 0, total_steps = 0, epoch = 0;  // done; of the run, 0: not told; from 0
  double loss = 0, lr = 0, samples_per_second = 0, steps_per_second = 0;
  std::optional<double> validation_loss, accuracy;
  std::optional<std::string> best;  // "val.loss 0.0123 at step 450"
};

class RunFollower {
 public:
  explicit RunFollower(std::string dir) : dir_(std::move(dir)) {}
  // Reads what has been added; a file that has become shorter is read anew. Throws Error for a line that is no event.
  void update();
  const RunStatus& status() const { return status_; }
  const std::string& dir() const { return dir_; }
  bool over() const { return status_.state == "ended" || status_.state == "stopped"; }

 private:
  void take(const std::string& line);
  std::string dir_, rest_;
  int64_t offset_ = 0;
  RunStatus status_;
};

// A table with a row per run.
std::string status_table(const std::vector<RunFollower>& runs);

}  // namespace lockstep
