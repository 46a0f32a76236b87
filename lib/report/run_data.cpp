#include "report/run_data.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "report/settings.h"

namespace lockstep {
namespace {

using nlohmann::json;
constexpr size_t kMaxLine = 64 << 20;
constexpr size_t kMaxRanks = 1 << 20;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : kNone;
}

int64_t whole(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string text(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

void read_start(const json& event, RunData& run) {
  run.world_size = whole(event, "world_size");
  run.parameters = whole(event, "parameters");
  run.samples = whole(event, "samples");
  run.steps_per_epoch = whole(event, "steps_per_epoch");
  run.arithmetic = text(event, "arithmetic");
  run.config = text(event, "config");
  run.environment.clear();
  const json environment = event.value("environment", json::object());
  for (const auto& [name, value] : environment.items()) {
    if (value.is_string()) run.environment[name] = value.get<std::string>();
  }
  run.ended.reset();
  run.stopped.clear();
}

StepLine step_line(const json& event) {
  StepLine line{.step = whole(event, "step"),
                .epoch = whole(event, "epoch"),
                .samples_seen = {},
                .loss = number(event, "loss"),
                .lr = number(event, "lr"),
                .samples_per_second = number(event, "samples_per_second"),
                .gradient_norm = number(event, "gradient_norm")};
  if (event.contains("samples_seen")) line.samples_seen = whole(event, "samples_seen");
  return line;
}

EvalLine eval_line(const json& event) {
  EvalLine line{.step = whole(event, "step"), .values = {}};
  for (const auto& [name, value] : event.items()) {
    const bool is_about_it = name == "step" || name == "epoch" || name == "count" || name == "seconds";
    if (value.is_number() && !is_about_it) line.values[name] = value.get<double>();
  }
  return line;
}

// The phases' lists, one number per rank.
TimeSplit time_split(const json& event) {
  TimeSplit split{.steps = whole(event, "steps"), .ranks = {}};
  for (size_t phase = 0; phase < kStepPhases.size(); ++phase) {
    const auto found = event.find(std::string(kStepPhases[phase]));
    if (found == event.end() || !found->is_array() || found->size() > kMaxRanks) continue;
    split.ranks.resize(std::max(split.ranks.size(), found->size()));
    for (size_t rank = 0; rank < found->size(); ++rank)
      if ((*found)[rank].is_number()) split.ranks[rank][phase] = (*found)[rank].get<double>();
  }
  return split;
}

void read_event(const json& event, RunData& run) {
  const std::string kind = event["event"];
  if (kind == "start" || kind == "resume") {
    read_start(event, run);
  } else if (kind == "step") {
    run.steps.push_back(step_line(event));
  } else if (kind == "eval") {
    run.evals.push_back(eval_line(event));
  } else if (kind == "time") {
    run.times.emplace_back(whole(event, "step"), time_split(event));
  } else if (kind == "end") {
    run.ended = whole(event, "steps");
    run.seconds = number(event, "seconds");
  } else if (kind == "stopped") {
    run.stopped = text(event, "reason");
  }
}

std::string label_of(const std::string& dir) {
  const std::filesystem::path path = std::filesystem::path(dir).lexically_normal();
  const std::string name = path.filename().string();
  return name.empty() ? path.parent_path().filename().string() : name;
}

}  // namespace

RunData read_run_data(const std::string& dir) {
  const std::string path = dir + "/metrics.jsonl";
  std::ifstream stream(path);
  if (!stream) throw_error("{}: cannot be read: is {} a run directory?", path, dir);
  RunData run = parse_run_log(stream, path);
  run.label = label_of(dir);
  std::error_code unknown;
  const auto written = std::filesystem::last_write_time(path, unknown);
  if (!unknown)
    run.quiet = std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
  return run;
}

RunData parse_run_log(std::istream& stream, const std::string& path) {
  RunData run;
  std::string line;
  for (int64_t number_of_line = 1; std::getline(stream, line); ++number_of_line) {
    if (line.size() > kMaxLine) throw_error("{}:{}: a line of {} bytes", path, number_of_line, line.size());
    const json event = json::parse(line, nullptr, false);
    if (event.is_discarded() && stream.eof()) break;
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string())
      throw_error("{}:{}: not an event of a run", path, number_of_line);
    read_event(event, run);
  }
  if (!run.config.empty()) run.settings = dotted_settings(run.config, path);
  return run;
}

// A run that trains and one that was killed differ in how long they have been quiet.
std::string state_of(const RunData& run) {
  if (run.ended) return "ended";
  if (!run.stopped.empty()) return "stopped: " + run.stopped;
  if (!run.quiet) return "not ended";
  const double seconds = std::max(*run.quiet, 0.0);
  const auto [value, unit] = seconds < 120    ? std::pair(seconds, "s")
                             : seconds < 7200 ? std::pair(seconds / 60, "min")
                                              : std::pair(seconds / 3600, "h");
  return fmt::format("not ended: last line {:.0f} {} ago", value, unit);
}

double throughput(const RunData& run) {
  double samples = 0, seconds = 0;
  for (size_t i = 1; i < run.steps.size(); ++i) {
    const StepLine &before = run.steps[i - 1], &line = run.steps[i];
    if (!before.samples_seen || !line.samples_seen || !(line.samples_per_second > 0)) continue;
    const double passed = static_cast<double>(*line.samples_seen) - static_cast<double>(*before.samples_seen);
    samples += passed;
    seconds += passed / line.samples_per_second;
  }
  return seconds > 0 ? samples / seconds : kNone;
}

std::vector<std::array<double, kStepPhases.size()>> mean_times(const RunData& run) {
  std::vector<std::array<double, kStepPhases.size()>> mean;
  const size_t first = run.times.size() > 1 ? 1 : 0;
  double steps = 0;
  for (size_t i = first; i < run.times.size(); ++i) {
    const TimeSplit& split = run.times[i].second;
    mean.resize(std::max(mean.size(), split.ranks.size()));
    steps += static_cast<double>(split.steps);
    for (size_t rank = 0; rank < split.ranks.size(); ++rank)
      for (size_t phase = 0; phase < kStepPhases.size(); ++phase) mean[rank][phase] += split.ranks[rank][phase];
  }
  for (auto& rank : mean)
    for (double& phase : rank) phase /= std::max(steps, 1.0);
  return mean;
}

}  // namespace lockstep
