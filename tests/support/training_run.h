// Trains with the real program under the real mpirun and reads the run's metrics.jsonl back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::test {

struct TrainingRun {
  Outcome outcome;
  std::vector<nlohmann::json> events;  // every line of metrics.jsonl

  std::vector<nlohmann::json> of(const std::string& kind) const;      // "step", "eval", "probe", ...
  std::vector<double> losses() const;                                 // global, of the logged steps
  std::vector<double> rank_losses(size_t rank) const;                 // NaN where the rank had no samples
  std::vector<std::vector<int64_t>> rank_indices(size_t rank) const;  // one list per micro-step
  std::vector<double> probe(const std::string& text, const std::string& when) const;  // the last such, by rank
};

// `config` is relative to the source directory or absolute. The run directory is a fresh one, removed afterwards.
// program: lockstep, or the same on simulated GPUs.
TrainingRun train(const std::string& config, int ranks, const std::vector<std::string>& overrides = {},
                  double limit_seconds = 100, const std::string& program = LOCKSTEP_BINARY);
// The same for a config given as text.
TrainingRun train_text(const std::string& yaml, int ranks, const std::vector<std::string>& overrides = {},
                       double limit_seconds = 100, const std::string& program = LOCKSTEP_BINARY);

}  // namespace lockstep::test
