// lockstep sweep SWEEP.yaml: trains a config with every combination of some values, and compares what came of it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "core/error.h"
#include "core/text_file.h"
#include "report/html_report.h"
#include "sweep/commands.h"
#include "sweep/cpu_shares.h"
#include "sweep/job_array.h"
#include "sweep/progress.h"
#include "sweep/run_sweep.h"
#include "sweep/trial_folder.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file;
  std::optional<int64_t> jobs;
  SweepOptions run;
  bool dry_run = false, report = false;
};

int64_t count(const std::vector<TrialOutcome>& outcomes, TrialOutcome::State state) {
  return std::ranges::count(outcomes, state, &TrialOutcome::state);
}

// Each array's command, and the trials of its tasks.
void print_arrays(const SweepSettings& sweep, const std::vector<Trial>& trials, const Options& options) {
  std::vector<size_t> all;
  for (size_t i = 0; i < trials.size(); ++i)
    if (!trial_folder_exists(trials[i]) || look_at(trials[i]).state != TrialOutcome::State::done) all.push_back(i);
  for (const std::vector<size_t>& tasks : array_groups(trials, all)) {
    std::printf("%s\n", typed(array_command(trials[tasks.front()], tasks.size(), sweep.jobs,
                                            submit_options(sweep, options.run), "array.sbatch", "array-K"))
                            .c_str());
    for (size_t task = 0; task < tasks.size(); ++task)
      std::printf("%6zu  %s\n", task, trials[tasks[task]].name.c_str());
  }
}

void print_plan(const SweepSettings& sweep, const std::vector<Trial>& trials, const Options& options, size_t cores) {
  std::printf("%zu trials below %s, at most %lld at once on %zu cores\n\n%10s %10s %10s %12s %7s  trial\n",
              trials.size(), std::filesystem::path(trials.front().dir).parent_path().c_str(),
              static_cast<long long>(sweep.jobs.value_or(1)), cores, "world_size", "batch_size", "accumulate",
              "global batch", "threads");
  for (const Trial& trial : trials) {
    const bool done = trial_folder_exists(trial) && look_at(trial).state == TrialOutcome::State::done;
    std::printf("%10lld %10lld %10lld %12lld %7lld  %s%s\n", static_cast<long long>(trial.world_size),
                static_cast<long long>(trial.batch_size), static_cast<long long>(trial.accumulate),
                static_cast<long long>(trial.global_batch), static_cast<long long>(trial.threads), trial.name.c_str(),
                done ? "  (done)" : "");
  }
  std::printf("\n");
  if (options.run.array) {
    print_arrays(sweep, trials, options);
    return;
  }
  for (const Trial& trial : trials) {
    const CommandWords words = options.run.submit
                                   ? batch_command(trial, submit_options(sweep, options.run), "trial.sbatch",
                                                   options.run.program, options.run.resume)
                                   : local_command(trial, options.run.program, options.run.resume);
    std::printf("%s\n", typed(words).c_str());
  }
}

void warn_of_shortage(const std::vector<Trial>& trials, size_t cores) {
  for (const Trial& trial : trials) {
    if (trial.world_size * trial.threads <= static_cast<int64_t>(cores)) continue;
    std::fprintf(
        stderr,
        "lockstep sweep: WARNING: %s: %lld ranks x %lld threads on %zu cores sit on each other; its throughput "
        "says nothing about scaling\n",
        trial.name.c_str(), static_cast<long long>(trial.world_size), static_cast<long long>(trial.threads), cores);
  }
}

void write_results(const std::vector<Trial>& trials, std::vector<TrialOutcome>& outcomes) {
  const SweepResults results = sweep_results(trials, outcomes);
  std::vector<RunData> runs;
  for (TrialOutcome& outcome : outcomes)
    if (outcome.run) runs.push_back(std::move(*outcome.run));
  const std::filesystem::path dir = std::filesystem::path(trials.front().dir).parent_path();
  write_text_file(dir / "results.csv", results_csv(results));
  write_text_file(dir / "results.json", results_json(results));
  write_text_file(dir / "results.md", results_markdown(results));
  write_text_file(dir / "report.html", html_report(runs, results_section(results)));
  std::printf("\n%s\nresults.csv, results.json, results.md and report.html are in %s\n",
              results_console(results).c_str(), dir.c_str());
}

int sweep(Options& options) {
  SweepSettings settings = load_sweep(options.file);
  if (options.jobs) settings.jobs = *options.jobs;
  const size_t cores = cpus_by_core().size();
  const std::vector<Trial> trials = make_trials(settings, options.run.submit ? 0 : static_cast<int64_t>(cores));
  options.run.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.run.stopped_code = kStoppedEarly;
  if (!options.run.submit && !options.report) warn_of_shortage(trials, cores);
  if (options.dry_run) {
    print_plan(settings, trials, options, cores);
    return kSuccess;
  }
  const auto tell = [](const std::string& line) {
    std::printf("lockstep sweep: %s\n", line.c_str());
    std::fflush(stdout);
  };
  if (options.report && !std::filesystem::exists(std::filesystem::path(trials.front().dir).parent_path()))
    throw_error("{}: is not there: expected the folder of a sweep that has been started; without --report it is",
                std::filesystem::path(trials.front().dir).parent_path().string());
  SweepEnd end =
      options.report ? SweepEnd{outcomes_now(trials, tell), false} : run_sweep(settings, trials, options.run, tell);
  const int64_t queued = count(end.outcomes, TrialOutcome::State::queued),
                running = count(end.outcomes, TrialOutcome::State::running),
                done = count(end.outcomes, TrialOutcome::State::done),
                rest = std::ssize(trials) - queued - running - done;
  write_results(trials, end.outcomes);
  if (queued + running > 0)
    std::printf("%lld trials done, %lld running, %lld queued; --report shows how they stand\n",
                static_cast<long long>(done), static_cast<long long>(running), static_cast<long long>(queued));
  if (rest > 0)
    std::printf("%lld of %zu trials are not done; --resume runs them\n", static_cast<long long>(rest), trials.size());
  return end.asked_to_stop ? kStoppedEarly : rest > 0 ? kRunFailed : kSuccess;
}

}  // namespace

Command add_sweep(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "sweep", "Train a config with every combination of some values (ranks, batch, any key) and compare the runs");
  command->add_option("SWEEP", options->file, "YAML file: config, dir, and grid or list (docs/sweeps.md)")->required();
  command
      ->add_option("--jobs", options->jobs,
                   "Trials (with --array tasks) side by side at most, instead of the file's jobs")
      ->check(CLI::Range(1, 4096));
  auto* resume = command->add_flag("--resume", options->run.resume, "Run only what is missing below dir");
  auto* submit =
      command->add_flag("--submit", options->run.submit, "Submit each trial to Slurm (sbatch) and wait for the jobs");
  command->add_flag("--array", options->run.array, "Submit trials that ask for the same resources as one job array")
      ->needs(submit);
  command->add_flag("!--no-wait", options->run.wait, "Submit and return; --report shows how the jobs stand")
      ->needs(submit);
  auto* dry_run =
      command->add_flag("--dry-run", options->dry_run, "Print the trials and their commands, start nothing");
  command
      ->add_flag("--report", options->report,
                 "Start nothing: show how the trials stand, queued, running (with their curves so far), done or failed")
      ->excludes(resume)
      ->excludes(submit)
      ->excludes(dry_run);
  command->footer(
      "Exit code: 0 all trials are done or on their way (queued, running), 1 some failed, 2 wrong input, 75 asked to "
      "end (a signal); results.csv, "
      "results.json, results.md and report.html are written in any case but 2.");
  return [options] { return sweep(*options); };
}

}  // namespace lockstep::app
