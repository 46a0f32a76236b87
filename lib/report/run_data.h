// A run directory as values: what its metrics.jsonl says (docs/metrics.md), for tables, pictures and the report.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/step_clock.h"

namespace lockstep {

struct StepLine {
  int64_t step = 0, epoch = 0;
  std::optional<int64_t> samples_seen;                                 // none in logs of older programs
  double loss = 0, lr = 0, samples_per_second = 0, gradient_norm = 0;  // NaN: not finite, or not logged
};

struct EvalLine {
  int64_t step = 0;
  std::map<std::string, double> values;  // single numbers: loss, accuracy, ...
};

struct RunData {
  std::string label;  // the directory's last component
  int64_t world_size = 1, parameters = 0, samples = 0, steps_per_epoch = 0;
  std::string arithmetic, config;                             // the resolved file
  std::map<std::string, std::string> environment;             // see train/environment.h
  std::vector<std::pair<std::string, std::string>> settings;  // the config, one dotted key each
  std::vector<StepLine> steps;
  std::vector<EvalLine> evals;
  std::vector<std::pair<int64_t, TimeSplit>> times;  // by the step they were told at
  std::optional<int64_t> ended;                      // steps of a run that trained to its end
  double seconds = 0;                                // then
  std::string stopped;                               // why the run was asked to end
  std::optional<double> quiet;                       // seconds since its log was last written to, where that is known
};

// Throws Error naming file and line for what is not a run's log. A last line cut off by a kill is left out.
RunData read_run_data(const std::string& dir);
RunData parse_run_log(std::istream& stream, const std::string& path);  // path: for messages

// "ended", "stopped: WHY", "not ended: last line 12 s ago".
std::string state_of(const RunData& run);

// Samples a second over the whole run: samples between the first line and the last, by the time they took (without
// evaluations and the first step, which warms up). NaN: fewer than two lines.
double throughput(const RunData& run);

// Mean seconds of a step in each phase on each rank, without those told at the first line (they warm up), or with them
// where there are no others. Empty: the log has none.
std::vector<std::array<double, kStepPhases.size()>> mean_times(const RunData& run);

}  // namespace lockstep
