// The trials of a sweep: every combination of its values as a complete, checked config of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/sweep_file.h"

namespace lockstep {

struct Trial {
  std::string name;                    // of its folder: "world_size=2,lr=0.1"
  std::string dir;                     // absolute; the run's run.dir
  std::string config;                  // the base config's path
  std::vector<Assignment> parameters;  // what distinguishes it
  std::vector<std::string> overrides;  // KEY=VALUE for --set, run.dir and device.threads among them
  std::string resolved;                // the config it trains with, as config.yaml will have it
  int64_t world_size = 1, batch_size = 1, accumulate = 1, global_batch = 1;
  int64_t threads = 1;  // per rank
};

// In the order of the file, the grid's last key changing fastest. cores: that the trials may use together.
// Throws Error for more than most_trials of them, a key set twice, equal trials, and whatever is wrong with the config
// of one, with its name.
std::vector<Trial> make_trials(const SweepSettings& sweep, int64_t cores);

// Letters, digits and ._=,+- only, 120 characters at most; names that had to be changed end in a digest of the text.
std::string folder_name(const std::string& text);

}  // namespace lockstep
