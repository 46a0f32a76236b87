#include "support/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/memory_folder.h"

namespace lockstep::test {

namespace fs = std::filesystem;

RunFolder::RunFolder(const char* yaml) {
  static std::atomic<int> counter{0};
  path_ = memory_folder() / fmt::format("lockstep-runs-{}-{}", getpid(), counter++);
  fs::create_directories(path_);
  std::ofstream(path_ / "run.yaml") << yaml;
}

RunFolder::~RunFolder() {
  std::error_code ignored;  // a rank that is being killed may still write
  fs::remove_all(path_, ignored);
}

Outcome RunFolder::train(const std::string& name, int ranks, const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment, double limit_seconds) const {
  std::vector<std::string> command{LOCKSTEP_BINARY, "train", (path_ / "run.yaml").string(), "--set",
                                   "run.dir=" + (path_ / name).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::vector<std::string> launch = mpirun(ranks, command);
  std::vector<std::string> with_environment{"env"};
  with_environment.insert(with_environment.end(), environment.begin(), environment.end());
  with_environment.insert(with_environment.end(), launch.begin(), launch.end());
  return run_process(with_environment, limit_seconds);
}

Told told(const fs::path& run) {
  Told result;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json event = nlohmann::json::parse(line);
    const std::string kind = event["event"];
    if (kind == "end") result.digest = event["model_sha256"];
    if (kind != "step" && kind != "eval") continue;
    for (const auto& rank : event.value("rank_indices", nlohmann::json::array()))
      for (const auto& micro_step : rank)
        for (const int64_t row : micro_step) result.rows[event["step"]].insert(row);
    event.erase("seconds");
    event.erase("samples_per_second");
    result.events.push_back(event.dump());
  }
  return result;
}

std::string bytes_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::map<std::string, std::string> checkpoint_bytes(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name != "config.yaml" && name != "manifest.json")
      files[fs::relative(entry.path(), run)] = bytes_of(entry.path());
  }
  return files;
}

}  // namespace lockstep::test
