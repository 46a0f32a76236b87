#include "support/training_run.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>

namespace lockstep::test {
namespace {

std::filesystem::path fresh_directory() {
  static std::atomic<int> counter{0};
  const auto path = std::filesystem::temp_directory_path() /
                    ("lockstep-test-" + std::to_string(getpid()) + "-" + std::to_string(counter++));
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace

std::vector<nlohmann::json> TrainingRun::of(const std::string& kind) const {
  std::vector<nlohmann::json> found;
  for (const auto& event : events) {
    if (event["event"] == kind) found.push_back(event);
  }
  return found;
}

std::vector<double> TrainingRun::losses() const {
  std::vector<double> losses;
  for (const auto& event : of("step")) losses.push_back(event["loss"]);
  return losses;
}

std::vector<double> TrainingRun::rank_losses(size_t rank) const {
  std::vector<double> losses;
  for (const auto& event : of("step")) {
    const auto& loss = event["rank_loss"][rank];
    losses.push_back(loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>());
  }
  return losses;
}

std::vector<std::vector<int64_t>> TrainingRun::rank_indices(size_t rank) const {
  std::vector<std::vector<int64_t>> indices;
  for (const auto& event : of("step")) {
    for (const auto& micro_step : event["rank_indices"][rank]) indices.push_back(micro_step);
  }
  return indices;
}

std::vector<double> TrainingRun::probe(const std::string& text, const std::string& when) const {
  std::vector<double> values;
  for (const auto& event : of("probe")) {
    if (event["probe"] == text && event["when"] == when) values = event["values"].get<std::vector<double>>();
  }
  return values;
}

TrainingRun train(const std::string& config, int ranks, const std::vector<std::string>& overrides, double limit_seconds,
                  const std::string& program) {
  const auto directory = fresh_directory();
  const auto path = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / config;
  std::vector<std::string> command{program, "train", path.string(), "--set", "run.dir=" + directory.string()};
  for (const std::string& override : overrides) command.insert(command.end(), {"--set", override});
  TrainingRun run;
  run.outcome = run_process(mpirun(ranks, command), limit_seconds);
  std::ifstream log(directory / "metrics.jsonl");
  for (std::string line; std::getline(log, line);) run.events.push_back(nlohmann::json::parse(line));
  std::filesystem::remove_all(directory);
  return run;
}

TrainingRun train_text(const std::string& yaml, int ranks, const std::vector<std::string>& overrides,
                       double limit_seconds, const std::string& program) {
  const auto directory = fresh_directory();
  const auto path = directory / "config.yaml";
  std::ofstream(path) << yaml;
  TrainingRun run = train(path.string(), ranks, overrides, limit_seconds, program);
  std::filesystem::remove_all(directory);
  return run;
}

}  // namespace lockstep::test
