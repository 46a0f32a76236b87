#include "sweep/run_sweep.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/text_file.h"
#include "sweep/commands.h"
#include "sweep/cpu_shares.h"
#include "sweep/process_pool.h"
#include "sweep/trial_folder.h"

namespace lockstep {
namespace {

using State = TrialOutcome::State;
using Tell = std::function<void(const std::string&)>;

class Runner {
 public:
  Runner(const SweepSettings& sweep, const std::vector<Trial>& trials, const SweepOptions& options, const Tell& tell)
      : sweep_(sweep), trials_(trials), options_(options), tell_(tell), shares_(cpus_by_core()) {
    const std::filesystem::path dir = std::filesystem::path(trials.front().dir).parent_path();
    script_ = (dir / "trial.sbatch").string();
  }

  SweepEnd run() {
    FolderLock lock(std::filesystem::path(trials_.front().dir).parent_path().string());
    find_missing();
    if (options_.submit) write_script();
    run_missing();
    if (end_.asked_to_stop && options_.submit) cancel_jobs();
    return std::move(end_);
  }

 private:
  struct Running {
    size_t trial;
    std::vector<int> cpus;
  };

  void find_missing() {
    for (size_t i = 0; i < trials_.size(); ++i) {
      const Trial& trial = trials_[i];
      if (trial_folder_exists(trial) && !options_.resume)
        throw_error("{}: is there already; with --resume, what is missing in it is run", trial.dir);
      end_.outcomes.push_back(look_at(trial));
      if (end_.outcomes.back().state == State::done) continue;
      if (!is_in_queue(trial, end_.outcomes.back())) missing_.push_back(i);
    }
    tell_(fmt::format("{} trials, {} to run", trials_.size(), missing_.size()));
  }

  // A job that an earlier call submitted must not be submitted twice.
  bool is_in_queue(const Trial& trial, TrialOutcome& outcome) const {
    const std::string job = options_.resume ? submitted_job(trial) : "";
    const std::string state = job.empty() ? "" : state_of_job(job);
    if (state.empty()) return false;
    outcome.problem = fmt::format("Slurm job {} is {}", job, state);
    return true;
  }

  void write_script() const { write_text_file(script_, batch_script()); }

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
    const size_t index = missing_[next_];
    const Trial& trial = trials_[index];
    std::vector<int> cpus;
    if (!options_.submit) {
      if (std::ssize(running_) >= sweep_.jobs) return false;
      std::optional<std::vector<int>> share = shares_.take(static_cast<size_t>(trial.world_size * trial.threads));
      if (!share) return false;
      cpus = std::move(*share);
    }
    ++next_;
    try {
      start(pool, index, cpus);
    } catch (const Error& error) {
      shares_.give_back(cpus);
      end_.outcomes[index] = {.state = State::failed, .problem = error.what(), .run = {}};
      tell_(fmt::format("{}: failed: {}", trial.name, error.what()));
    }
    return true;
  }

  void start(ProcessPool& pool, size_t index, const std::vector<int>& cpus) {
    const Trial& trial = trials_[index];
    const bool there = trial_folder_exists(trial);
    if (!there || !options_.resume) make_trial_folder(trial);
    PooledCommand command{.command = options_.submit
                                         ? batch_command(trial, sweep_.sbatch, script_, options_.program, there)
                                         : local_command(trial, options_.program, there),
                          .output = options_.submit ? submit_output(trial) : trial.dir + "/launch.log",
                          .cpus = cpus,
                          .limit = {}};
    if (sweep_.time_limit) command.limit = sweep_.time_limit->seconds;
    running_[pool.start(command)] = {index, cpus};
    tell_(fmt::format("{}: started ({} of {}){}", trial.name, next_, missing_.size(),
                      cpus.empty() ? "" : fmt::format(" on CPU {}", fmt::join(cpus, ","))));
  }

  void take_in(const PooledEnd& ended, bool asked_to_stop) {
    const Running running = running_.at(ended.id);
    running_.erase(ended.id);
    shares_.give_back(running.cpus);
    const Trial& trial = trials_[running.trial];
    TrialOutcome& outcome = end_.outcomes[running.trial];
    outcome = look_at(trial);
    if (ended.code == 0 && outcome.state == State::done) {
      tell_(fmt::format("{}: done in {:.1f} s, {:.0f} samples/s", trial.name, ended.seconds, throughput(*outcome.run)));
      return;
    }
    outcome.state = ended.code == options_.stopped_code || asked_to_stop ? State::stopped : State::failed;
    outcome.problem = ended.late      ? fmt::format("ended at time_limit, after {:.0f} s", ended.seconds)
                      : asked_to_stop ? "the sweep was asked to stop"
                                      : fmt::format("exit code {}: {}", ended.code, reason_in_output(trial));
    if (ended.late && options_.submit) cancel_job(submitted_job(trial));
    tell_(
        fmt::format("{}: {}: {}", trial.name, outcome.state == State::stopped ? "stopped" : "failed", outcome.problem));
  }

  void cancel_jobs() const {
    for (size_t i = 0; i < trials_.size(); ++i)
      if (const std::string job = submitted_job(trials_[i]); !job.empty() && end_.outcomes[i].state == State::stopped)
        cancel_job(job);
  }

  const SweepSettings& sweep_;
  const std::vector<Trial>& trials_;
  const SweepOptions& options_;
  const Tell& tell_;
  CpuShares shares_;
  std::string script_;  // of the jobs
  SweepEnd end_;
  std::vector<size_t> missing_;
  size_t next_ = 0;  // of missing_
  std::map<pid_t, Running> running_;
};

}  // namespace

SweepEnd run_sweep(const SweepSettings& sweep, const std::vector<Trial>& trials, const SweepOptions& options,
                   const Tell& tell) {
  return Runner(sweep, trials, options, tell).run();
}

}  // namespace lockstep
