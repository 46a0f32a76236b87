// A checkpoint on disk: a directory step-000000500 with model.safetensors, optimizer.safetensors, ..., state.json,
// config.yaml, and manifest.json with the sizes and checksums of the others, written last. It is complete or it is not
// there: it grows under a temporary name, every file and the directory are flushed to the disk, then it is renamed.
// The text files `last` and `best` beside it hold the name of a checkpoint and are moved on after that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/state.h"
#include "train/checkpoint/snapshot.h"
#include "train/checkpoint/tensor_file.h"

namespace lockstep {

class Directory;

inline constexpr const char* kCheckpointsName = "checkpoints";  // the folder of them, in a run's directory
inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 26;   // of state.json and of config.yaml

struct Checkpoint {
  std::string path;
  int64_t step = 0;
  State state;
  std::string config;
  std::map<std::string, TensorFile> tensors;              // by file, without .safetensors
  const TensorFile& file(const std::string& name) const;  // Error: not in the checkpoint
};

struct KeepRule {
  int64_t last = 3;   // the newest so many; at least 1
  int64_t every = 0;  // and those whose step this divides; 0: none
  bool best = true;   // and the one `best` names
};

// The checkpoints of a run. One process writes, any may read.
class CheckpointFolder {
 public:
  CheckpointFolder(std::string dir, KeepRule keep) : dir_(std::move(dir)), keep_(keep) {}

  // Makes the folder and removes what a killed writer left half done: before anything else at a start. Error: it cannot
  // be written.
  void prepare() const;
  // Returns the new checkpoint's path once it is safe on the disk, `last` (and `best`) name it, and those the rule
  // doesn't keep are gone (one that cannot be removed is warned about). Writing a step anew replaces it. Error, with
  // the system's reason (disk full, quota, ...): what was there before is untouched and the half-written is removed.
  std::string write(const Snapshot& snapshot, bool best) const;
  // The whole one of the highest step; every newer one that is damaged is warned about, with what is wrong. nullopt:
  // there is none. Error: there are some, but none is whole.
  std::optional<Checkpoint> newest() const;
  std::vector<int64_t> steps() const;     // of complete-looking ones, ascending
  void remove_after(int64_t step) const;  // the checkpoints of later steps
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
  KeepRule keep_;
};

// Reads and checks a checkpoint's directory, or the one that a `last` or `best` file names, or, of a folder of
// checkpoints or a run's directory, the newest. Error: anything that isn't exactly as it was written: a file missing,
// extra, truncated, changed; a name that leads out of the directory.
Checkpoint read_checkpoint(const std::string& path);
Checkpoint read_checkpoint_directory(const Directory& directory);  // of this very directory

}  // namespace lockstep
