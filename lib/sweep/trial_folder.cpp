#include "sweep/trial_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "report/settings.h"
#include "sweep/file_lock.h"
#include "sweep/run_sweep.h"
#include "sweep/slurm.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Which threads a trial has does not make it another one.
std::vector<std::pair<std::string, std::string>> comparable(const std::string& config, const std::string& source) {
  auto settings = dotted_settings(config, source);
  std::erase_if(settings, [](const auto& setting) { return setting.first == "device.threads"; });
  return settings;
}

bool is_number_of_job(const std::string& line) { return line.find_first_not_of("0123456789;") == std::string::npos; }

std::string lock_of(const std::string& folder) { return folder + "/sweep.lock"; }

}  // namespace

std::vector<std::string> last_lines(const std::string& path) {
  constexpr std::streamoff kMost = 64 << 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kMost, 0));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

void make_trial_folder(const Trial& trial) {
  if (::mkdir(trial.dir.c_str(), 0777) == 0) return;
  throw_error("{}: {}", trial.dir, errno == EEXIST ? "is there already" : std::strerror(errno));
}

bool trial_folder_exists(const Trial& trial) {
  std::error_code error;
  return fs::exists(fs::symlink_status(trial.dir, error));
}

TrialOutcome look_at(const Trial& trial) {
  TrialOutcome outcome;
  std::error_code error;
  if (!fs::exists(trial.dir + "/metrics.jsonl", error)) return outcome;
  try {
    outcome.run = read_run_data(trial.dir);
  } catch (const Error& damage) {  // it will be run again
    outcome.problem = damage.what();
    return outcome;
  }
  const RunData& run = *outcome.run;
  if (comparable(run.config, trial.dir) != comparable(trial.resolved, trial.name))
    throw_error("{}: holds a run of another config than trial {} has now: move it away, or give the sweep another dir",
                trial.dir, trial.name);
  if (run.ended) outcome.state = TrialOutcome::State::done;
  if (!run.ended && !run.stopped.empty()) {
    outcome.state = TrialOutcome::State::stopped;
    outcome.problem = run.stopped;
  }
  return outcome;
}

std::string reason_in_output(const Trial& trial) {
  std::vector<std::string> lines = last_lines(trial.dir + "/launch.log");
  for (std::string& line : last_lines(submit_output(trial))) {
    if (line.starts_with("array-")) {
      const fs::path array = fs::path(line.substr(0, line.find(' '))).filename();
      for (std::string& said : last_lines(submit_output((fs::path(trial.dir).parent_path() / array).string())))
        if (!is_number_of_job(said)) lines.push_back(std::move(said));
    } else if (!is_number_of_job(line)) {
      lines.push_back(std::move(line));
    }
  }
  constexpr size_t kLongest = 300;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->starts_with("lockstep:")) return line->substr(0, kLongest);
  return lines.empty() ? "no output" : lines.back().substr(0, kLongest);
}

bool is_run_here(const Trial& trial) { return is_locked(trial.dir + "/launch.log"); }

bool is_at_work_in(const std::string& folder) { return is_locked(lock_of(folder)); }

FolderLock::FolderLock(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_error("{}: cannot be made: {}", folder, error.message());
  const std::string path = lock_of(folder);
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw_error("{}: {}", path, std::strerror(errno));
  if (take_lock(file_)) return;
  close(file_);
  throw_error("{}: another sweep is at work in this folder", folder);
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace lockstep
