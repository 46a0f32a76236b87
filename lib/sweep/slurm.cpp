#include "sweep/slurm.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/run_program.h"
#include "sweep/trial_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
constexpr double kSlurmAnswers = 30;  // seconds
constexpr size_t kMostAtOnce = 500;   // jobs in a command line; the answer stays below run_program's bound

bool is_whole_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// --parsable: "JOB", or "JOB;CLUSTER".
std::string job_in(const std::string& line) {
  const std::string job = line.substr(0, line.find(';'));
  return is_whole_number(job) ? job : "";
}

std::string last_job(const std::string& path) {
  const std::vector<std::string> lines = last_lines(path);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (const std::string job = job_in(*line); !job.empty()) return job;
  return "";
}

std::string without_task(const std::string& job) { return job.substr(0, job.find('_')); }

void ask_queue(const std::vector<std::string>& jobs, std::map<std::string, std::string>& states) {
  const ProgramAnswer answer = run_program({"squeue", "--noheader", "--array", "--states=all", "--format=%i %T",
                                            fmt::format("--jobs={}", fmt::join(jobs, ","))},
                                           kSlurmAnswers);
  if (answer.exit_code == 0) {
    states.merge(parse_job_states(answer.output, ' '));
  } else if (answer.output.find("Invalid job id") == std::string::npos) {
    throw_error("squeue: exit code {}: {}", answer.exit_code, answer.output);
  } else if (jobs.size() > 1) {  // one of them is forgotten
    for (const std::string& job : jobs) ask_queue({job}, states);
  }
}

// Not every Slurm keeps accounts: then sacct has nothing to say, or is not there.
void ask_accounts(const std::vector<std::string>& jobs, std::map<std::string, std::string>& states) {
  std::string output;
  try {
    output = run_program({"sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State",
                          fmt::format("--jobs={}", fmt::join(jobs, ","))},
                         kSlurmAnswers)
                 .output;
  } catch (const Error&) {
    return;
  }
  states.merge(parse_job_states(output, '|'));
}

template <typename Ask>
void ask_in_parts(const std::vector<std::string>& jobs, std::map<std::string, std::string>& states, Ask ask) {
  for (size_t first = 0; first < jobs.size(); first += kMostAtOnce) {
    const size_t last = std::min(first + kMostAtOnce, jobs.size());
    ask({jobs.begin() + static_cast<std::ptrdiff_t>(first), jobs.begin() + static_cast<std::ptrdiff_t>(last)}, states);
  }
}

// Singles together, each array alone: its answer has a line per task.
void ask_queue_of_all(const std::vector<std::string>& jobs, std::map<std::string, std::string>& states) {
  std::vector<std::string> singles;
  std::set<std::string> arrays;
  for (const std::string& job : jobs) {
    if (job.find('_') == std::string::npos)
      singles.push_back(job);
    else
      arrays.insert(without_task(job));
  }
  ask_in_parts(singles, states, ask_queue);
  for (const std::string& array : arrays) ask_queue({array}, states);
}

}  // namespace

std::string submit_output(const Trial& trial) { return submit_output(trial.dir); }
std::string submit_output(const std::string& array_folder) { return array_folder + "/sbatch"; }

std::string submitted_job(const Trial& trial) {
  const std::vector<std::string> lines = last_lines(submit_output(trial));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const std::string job = job_in(*line); !job.empty()) return job;
    const size_t space = line->find(' ');
    if (!line->starts_with("array-") || space == std::string::npos) continue;
    const std::string task = line->substr(space + 1);
    const fs::path folder = fs::path(trial.dir).parent_path() / fs::path(line->substr(0, space)).filename();
    const std::string job = last_job(submit_output(folder.string()));
    return job.empty() || !is_whole_number(task) ? "" : job + "_" + task;
  }
  return "";
}

std::map<std::string, std::string> parse_job_states(const std::string& output, char separator) {
  std::map<std::string, std::string> states;
  for (size_t start = 0; start < output.size();) {
    const size_t end = std::min(output.find('\n', start), output.size());
    const std::string line = output.substr(start, end - start);
    start = end + 1;
    const size_t at = line.find(separator);
    if (at == std::string::npos || !is_whole_number(without_task(line.substr(0, at)))) continue;
    const std::string state = line.substr(at + 1);
    states[line.substr(0, at)] = state.substr(0, state.find(' '));  // "CANCELLED by 0"
  }
  return states;
}

std::map<std::string, std::string> states_of_jobs(const std::vector<std::string>& jobs) {
  std::map<std::string, std::string> states;
  if (jobs.empty()) return states;
  ask_queue_of_all(jobs, states);
  std::vector<std::string> forgotten;
  for (const std::string& job : jobs)
    if (!states.contains(job)) forgotten.push_back(job);
  if (!forgotten.empty()) ask_in_parts(forgotten, states, ask_accounts);
  return states;
}

JobPhase phase_of(const std::string& state) {
  constexpr std::array<std::string_view, 7> queued{"PENDING",      "CONFIGURING",   "REQUEUED",    "REQUEUE_FED",
                                                   "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"};
  constexpr std::array<std::string_view, 7> running{"RUNNING",   "COMPLETING", "STAGE_OUT", "SIGNALING",
                                                    "SUSPENDED", "STOPPED",    "RESIZING"};
  if (std::ranges::find(queued, state) != queued.end()) return JobPhase::queued;
  return std::ranges::find(running, state) != running.end() ? JobPhase::running : JobPhase::ended;
}

void cancel_jobs(const std::vector<std::string>& jobs) {
  std::map<std::string, std::string> none;
  ask_in_parts(jobs, none, [](const std::vector<std::string>& part, std::map<std::string, std::string>&) {
    std::vector<std::string> words{"scancel"};
    words.insert(words.end(), part.begin(), part.end());
    run_program(words, kSlurmAnswers);
  });
}

}  // namespace lockstep
