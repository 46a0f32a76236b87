#include "sweep/run_sweep.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/text_file.h"
#include "sweep/commands.h"
#include "sweep/cpu_shares.h"
#include "sweep/job_array.h"
#include "sweep/process_pool.h"
#include "sweep/progress.h"
#include "sweep/slurm.h"
#include "sweep/trial_folder.h"

namespace lockstep {
namespace {

using State = TrialOutcome::State;
using Tell = std::function<void(const std::string&)>;

class Runner {
 public:
  Runner(const SweepSettings& sweep, const std::vector<Trial>& trials, const SweepOptions& options, const Tell& tell)
      : sweep_(sweep), trials_(trials), options_(options), tell_(tell), shares_(cpus_by_core()) {
    dir_ = std::filesystem::path(trials.front().dir).parent_path().string();
    script_ = dir_ + (options.array ? "/array.sbatch" : "/trial.sbatch");
  }

  SweepEnd run() {
    FolderLock lock(dir_);
    find_missing();
    if (options_.submit) write_text_file(script_, options_.array ? array_script() : batch_script());
    run_missing();
    if (end_.asked_to_stop && options_.submit) cancel_stopped();
    return std::move(end_);
  }

 private:
  // One command: a trial, or the trials of a job array.
  struct Launch {
    std::vector<size_t> trials;
    std::vector<int> cpus;
  };

  void find_missing() {
    std::vector<size_t> missing;
    for (const Trial& trial : trials_) {
      if (trial_folder_exists(trial) && !options_.resume)
        throw_error("{}: is there already; with --resume, what is missing in it is run", trial.dir);
      end_.outcomes.push_back(look_at(trial));
    }
    if (options_.resume) find_submitted();
    for (size_t i = 0; i < trials_.size(); ++i)
      if (end_.outcomes[i].state != State::done && !is_under_way(end_.outcomes[i])) missing.push_back(i);
    tell_(fmt::format("{} trials, {} to run", trials_.size(), missing.size()));
    if (options_.array) {
      missing_ = array_groups(trials_, missing);
    } else {
      for (const size_t index : missing) missing_.push_back({index});
    }
  }

  // A job that an earlier call submitted must not be submitted twice.
  void find_submitted() {
    std::map<size_t, std::string> jobs;
    std::vector<std::string> asked;
    for (size_t i = 0; i < trials_.size(); ++i) {
      const std::string job = end_.outcomes[i].state == State::done ? "" : submitted_job(trials_[i]);
      if (job.empty()) continue;
      jobs[i] = job;
      asked.push_back(job);
    }
    const std::map<std::string, std::string> states = states_of_jobs(asked);
    for (const auto& [i, job] : jobs) add_state_of_job(trials_[i], job, states, end_.outcomes[i]);
  }

  void run_missing() {
    ProcessPool pool;
    for (;;) {
      while (!pool.asked_to_stop() && next_ < missing_.size() && start_next(pool)) {
      }
      const std::optional<PooledEnd> ended = pool.wait();
      if (!ended && (next_ == missing_.size() || pool.asked_to_stop())) break;
      if (ended) take_in(*ended, pool.asked_to_stop());
    }
    end_.asked_to_stop = pool.asked_to_stop();
  }

  // False: something must end first.
  bool start_next(ProcessPool& pool) {
    Launch launch{missing_[next_], {}};
    if (!options_.submit) {
      const Trial& trial = trials_[launch.trials.front()];
      if (std::ssize(running_) >= sweep_.jobs.value_or(1)) return false;
      std::optional<std::vector<int>> share = shares_.take(static_cast<size_t>(trial.world_size * trial.threads));
      if (!share) return false;
      launch.cpus = std::move(*share);
    }
    ++next_;
    try {
      start(pool, launch);
    } catch (const Error& error) {
      shares_.give_back(launch.cpus);
      for (const size_t index : launch.trials) fail(index, State::failed, error.what());
    }
    return true;
  }

  void start(ProcessPool& pool, const Launch& launch) {
    PooledCommand command = options_.array ? array_of(launch.trials) : command_of(launch.trials.front());
    command.cpus = launch.cpus;
    if (sweep_.time_limit && !options_.submit) command.limit = sweep_.time_limit->seconds;
    running_[pool.start(command)] = launch;
    const std::string where = launch.cpus.empty() ? "" : fmt::format(" on CPU {}", fmt::join(launch.cpus, ","));
    tell_(options_.array ? fmt::format("{}: {} trials submitted as a job array",
                                       std::filesystem::path(command.output).parent_path().filename().string(),
                                       launch.trials.size())
                         : fmt::format("{}: started ({} of {}){}", trials_[launch.trials.front()].name, next_,
                                       missing_.size(), where));
  }

  // True: the folder was there, its run goes on.
  bool enter_folder(const Trial& trial) const {
    const bool there = trial_folder_exists(trial);
    if (!there || !options_.resume) make_trial_folder(trial);
    return there;
  }

  PooledCommand command_of(size_t index) const {
    const Trial& trial = trials_[index];
    const bool there = enter_folder(trial);
    PooledCommand command;
    command.command = options_.submit
                          ? batch_command(trial, submit_options(sweep_, options_), script_, options_.program, there)
                          : local_command(trial, options_.program, there);
    command.output = options_.submit ? submit_output(trial) : trial.dir + "/launch.log";
    return command;
  }

  PooledCommand array_of(const std::vector<size_t>& tasks) const {
    std::vector<CommandWords> commands;
    for (const size_t index : tasks)
      commands.push_back(train_command(trials_[index], options_.program, enter_folder(trials_[index])));
    const std::string folder = make_array_folder(dir_, trials_, tasks, commands);
    PooledCommand command;
    command.command = array_command(trials_[tasks.front()], tasks.size(), sweep_.jobs, submit_options(sweep_, options_),
                                    script_, folder);
    command.output = submit_output(folder);
    return command;
  }

  void take_in(const PooledEnd& ended, bool asked_to_stop) {
    const Launch launch = running_.at(ended.id);
    running_.erase(ended.id);
    shares_.give_back(launch.cpus);
    std::map<std::string, std::string> states;
    if (options_.array && ended.code != 0 && !asked_to_stop) states = states_of_array(launch.trials);
    for (const size_t index : launch.trials) take_in(index, ended, states, asked_to_stop);
  }

  void take_in(size_t index, const PooledEnd& ended, const std::map<std::string, std::string>& states,
               bool asked_to_stop) {
    const Trial& trial = trials_[index];
    TrialOutcome& outcome = end_.outcomes[index];
    outcome = look_at(trial);
    const bool came_to_its_end = outcome.state == State::done && (ended.code == 0 || options_.array);
    if (came_to_its_end) {
      tell_(fmt::format("{}: done in {:.1f} s, {:.0f} samples/s", trial.name,
                        options_.array ? outcome.run->seconds : ended.seconds, throughput(*outcome.run)));
    } else if (!options_.wait && ended.code == 0) {
      outcome.state = State::queued;
      outcome.problem = "Slurm job " + submitted_job(trial);
      tell_(fmt::format("{}: {}", trial.name, outcome.problem));
    } else if (asked_to_stop) {
      fail(index, State::stopped, "the sweep was asked to stop");
    } else if (ended.late) {
      fail(index, State::failed, fmt::format("ended at time_limit, after {:.0f} s", ended.seconds));
    } else if (options_.array) {
      const State state = outcome.state == State::stopped ? State::stopped : State::failed;
      const std::string job = submitted_job(trial);
      const auto found = states.find(job);
      fail(index, state,
           fmt::format("Slurm job {}{}: {}", job, found == states.end() ? "" : " is " + found->second,
                       reason_in_output(trial)));
    } else {
      fail(index, ended.code == options_.stopped_code ? State::stopped : State::failed,
           fmt::format("exit code {}: {}", ended.code, reason_in_output(trial)));
    }
  }

  std::map<std::string, std::string> states_of_array(const std::vector<size_t>& tasks) const {
    std::vector<std::string> jobs;
    for (const size_t index : tasks)
      if (const std::string job = submitted_job(trials_[index]); !job.empty()) jobs.push_back(job);
    return states_of_jobs(jobs);
  }

  void fail(size_t index, State state, const std::string& problem) {
    end_.outcomes[index].state = state;
    end_.outcomes[index].problem = problem;
    tell_(fmt::format("{}: {}: {}", trials_[index].name, state == State::stopped ? "stopped" : "failed", problem));
  }

  void cancel_stopped() const {
    std::vector<std::string> jobs;
    for (size_t i = 0; i < trials_.size(); ++i)
      if (const std::string job = submitted_job(trials_[i]); !job.empty() && end_.outcomes[i].state == State::stopped)
        jobs.push_back(job);
    cancel_jobs(jobs);
  }

  const SweepSettings& sweep_;
  const std::vector<Trial>& trials_;
  const SweepOptions& options_;
  const Tell& tell_;
  CpuShares shares_;
  std::string dir_;     // of the sweep
  std::string script_;  // of the jobs
  SweepEnd end_;
  std::vector<std::vector<size_t>> missing_;  // trials by command
  size_t next_ = 0;                           // of missing_
  std::map<pid_t, Launch> running_;
};

}  // namespace

SubmitOptions submit_options(const SweepSettings& sweep, const SweepOptions& options) {
  SubmitOptions made{.wait = options.wait, .time_limit = {}, .more = sweep.sbatch};
  if (sweep.time_limit) made.time_limit = sweep.time_limit->seconds;
  return made;
}

SweepEnd run_sweep(const SweepSettings& sweep, const std::vector<Trial>& trials, const SweepOptions& options,
                   const Tell& tell) {
  return Runner(sweep, trials, options, tell).run();
}

}  // namespace lockstep
