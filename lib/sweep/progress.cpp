#include "sweep/progress.h"

#include <filesystem>

#include "core/error.h"
#include "sweep/run_sweep.h"
#include "sweep/slurm.h"
#include "sweep/trial_folder.h"

namespace lockstep {
namespace {

using State = TrialOutcome::State;

bool has_output(const Trial& trial) {
  std::error_code unknown;
  return std::filesystem::exists(trial.dir + "/launch.log", unknown);
}

// Of a trial without a job.
void add_state_of_folder(const Trial& trial, bool sweep_is_at_work, TrialOutcome& outcome) {
  const bool is_there = trial_folder_exists(trial);
  if (is_there && is_run_here(trial)) {
    outcome.state = State::running;
    outcome.problem.clear();
  } else if (sweep_is_at_work && !has_output(trial)) {  // not started, or sbatch has not answered yet
    outcome.state = State::queued;
  } else if (is_there && outcome.state == State::missing && outcome.problem.empty()) {
    outcome.state = State::failed;
    outcome.problem = "ended early: " + reason_in_output(trial);
  }
}

}  // namespace

void add_state_of_job(const Trial& trial, const std::string& job, const std::map<std::string, std::string>& states,
                      TrialOutcome& outcome) {
  const auto found = states.find(job);
  const std::string state = found == states.end() ? "" : found->second;
  const JobPhase phase = phase_of(state);
  if (phase != JobPhase::ended) {
    outcome.state = phase == JobPhase::queued ? State::queued : State::running;
    outcome.problem = fmt::format("Slurm job {} is {}", job, state);
  } else if (outcome.state != State::stopped) {
    outcome.state = State::failed;
    outcome.problem =
        fmt::format("Slurm job {} {}: {}", job, state.empty() ? "has ended" : "is " + state, reason_in_output(trial));
  }
}

std::vector<TrialOutcome> outcomes_now(const std::vector<Trial>& trials,
                                       const std::function<void(const std::string&)>& tell) {
  const bool at_work = is_at_work_in(std::filesystem::path(trials.front().dir).parent_path().string());
  std::vector<TrialOutcome> outcomes;
  std::map<size_t, std::string> jobs;  // by trial that is not done
  std::vector<std::string> asked;
  for (size_t i = 0; i < trials.size(); ++i) {
    outcomes.push_back(look_at(trials[i]));
    if (outcomes[i].state == State::done) continue;
    const std::string job = is_run_here(trials[i]) ? "" : submitted_job(trials[i]);
    if (job.empty()) {
      add_state_of_folder(trials[i], at_work, outcomes[i]);
    } else {
      jobs[i] = job;
      asked.push_back(job);
    }
  }
  std::map<std::string, std::string> states;
  try {
    states = states_of_jobs(asked);
  } catch (const Error& error) {  // where nothing says otherwise, jobs are believed to go on
    tell(fmt::format("{}; the states of submitted trials are those of their folders", error.what()));
    for (const auto& [i, job] : jobs)
      if (outcomes[i].state != State::stopped) states[job] = outcomes[i].run ? "RUNNING" : "PENDING";
  }
  for (const auto& [i, job] : jobs) {
    if (states.contains(job)) outcomes[i] = look_at(trials[i]);  // it may have ended in between
    if (outcomes[i].state != State::done) add_state_of_job(trials[i], job, states, outcomes[i]);
  }
  return outcomes;
}

}  // namespace lockstep
