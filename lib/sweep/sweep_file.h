// SWEEP.yaml: a base config, and which of its keys take which values. Read as strictly as a config, with its tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/yaml_node.h"

namespace lockstep {

struct Assignment {
  std::string name;   // as the file has it: world_size, or optimizer.lr
  std::string key;    // dotted: distributed.world_size
  std::string value;  // for --set: a flow value
  std::string shown;  // for people and folder names
  YamlPosition at;
};

struct SweepSettings {
  std::string path;    // of the sweep file
  std::string config;  // the base, below the project root of the sweep file
  std::string dir = "runs/sweep";
  std::vector<Assignment> set;                // of every trial
  std::vector<std::vector<Assignment>> grid;  // a list of values for each key
  std::vector<std::vector<Assignment>> list;  // one entry, of several keys, for each trial (times the grid)
  std::optional<int64_t> jobs;                // trials side by side at most; without it one here, all in a job array
  int64_t threads = 0;  // per rank; 0: the cores divided by the largest world_size, so that all trials have the same
  int64_t most_trials = 64;
  std::optional<Duration> time_limit;  // of a trial
  std::vector<std::string> sbatch;     // further options with --submit
};

// Throws Error "file:line:column: ...", with the nearest known key where one is unknown.
SweepSettings load_sweep(const std::string& path);
SweepSettings parse_sweep(const std::string& text, const std::string& path);

}  // namespace lockstep
