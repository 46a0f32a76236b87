// Writes checkpoints beside training: the step pays for making the snapshot only. At most one is under way.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "train/checkpoint/checkpoint.h"

namespace lockstep {

class CheckpointWriter {
 public:
  // background false: write() returns when it is on the disk.
  CheckpointWriter(CheckpointFolder folder, bool background);
  ~CheckpointWriter();  // waits
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits for the one under way first. What goes wrong is kept for take_failure().
  void write(Snapshot snapshot, bool best);
  void wait();  // until nothing is under way
  // What went wrong since it was last asked, once (without waiting).
  std::optional<std::string> take_failure();

 private:
  void write_now(const Snapshot& snapshot, bool best);

  CheckpointFolder folder_;
  bool background_;
  std::thread thread_;  // of the one under way
  std::mutex mutex_;    // of failure_
  std::optional<std::string> failure_;
};

}  // namespace lockstep
