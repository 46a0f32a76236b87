#include "sweep/trial_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/run_program.h"
#include "report/settings.h"
#include "sweep/run_sweep.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
constexpr double kSlurmAnswers = 30;  // seconds

// The last so many bytes of a file, in lines; none where it cannot be read.
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

// Which threads a trial has does not make it another one.
std::vector<std::pair<std::string, std::string>> comparable(const std::string& config, const std::string& source) {
  auto settings = dotted_settings(config, source);
  std::erase_if(settings, [](const auto& setting) { return setting.first == "device.threads"; });
  return settings;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

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
  for (std::string& line : last_lines(submit_output(trial)))
    if (!is_whole_number(line)) lines.push_back(std::move(line));
  constexpr size_t kLongest = 300;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->starts_with("lockstep:")) return line->substr(0, kLongest);
  return lines.empty() ? "no output" : lines.back().substr(0, kLongest);
}

std::string submit_output(const Trial& trial) { return trial.dir + "/sbatch"; }

// --parsable: "JOB", or "JOB;CLUSTER".
std::string submitted_job(const Trial& trial) {
  const std::vector<std::string> lines = last_lines(submit_output(trial));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string job = line->substr(0, line->find(';'));
    if (is_whole_number(job)) return job;
  }
  return "";
}

std::string state_of_job(const std::string& job) {
  const ProgramAnswer answer = run_program({"squeue", "--noheader", "--jobs", job, "--format", "%T"}, kSlurmAnswers);
  if (answer.exit_code != 0) return "";  // "Invalid job id specified": ended long ago
  return answer.output.substr(0, answer.output.find('\n'));
}

void cancel_job(const std::string& job) { run_program({"scancel", job}, kSlurmAnswers); }

FolderLock::FolderLock(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_error("{}: cannot be made: {}", folder, error.message());
  const std::string path = folder + "/sweep.lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw_error("{}: {}", path, std::strerror(errno));
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  close(file_);
  throw_error("{}: another sweep is at work in this folder", folder);
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace lockstep
