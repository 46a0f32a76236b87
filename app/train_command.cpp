// lockstep train CONFIG: the program's purpose. Starts MPI, chooses device and communicator, trains, reports; makes
// sure that whatever goes wrong on any rank ends all of them with one clear message.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/ranks.h"
#include "comm/cores.h"
#include "comm/launcher.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "comm/watchdog.h"
#include "core/fault.h"
#include "core/log.h"
#include "train/config_batch.h"
#include "train/config_path.h"
#include "train/memory_check.h"
#include "train/resources.h"
#include "train/slurm_job.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
  ResumeRequest resume;
  bool dry_run = false;
  log::Options log;
  std::optional<int64_t> log_every;
  std::string trace;           // steps; empty: none
  double start_timeout = 600;  // seconds
};

constexpr const char *kTraceAlone = "true", *kTraceDefault = "10-19";  // the first steps are not like the others

const auto kProgramStart = std::chrono::steady_clock::now();

// After a run that was asked to end: what becomes of it.
int end_interrupted(const RunResult& result, const Config& config, const MpiEnvironment& mpi) {
  const std::string what = fmt::format("{}: the run ends after {} steps", *result.interrupted, result.steps);
  if (!result.saved) {
    if (mpi.rank() == 0) log::warning("{}; nothing is saved, as checkpoint.every is never", what);
    return kRunFailed;
  }
  log::info("{} and is saved; --resume auto goes on", what);
  if (config.run.requeue && mpi.rank() == 0 && may_requeue(*result.interrupted)) requeue_job();
  return kStoppedEarly;
}

// The first rank of each node asks for all of them. On a GPU its own memory is what counts.
void check_memory(const DataFacts& data, const Config& config, const Resources& resources, const MpiEnvironment& mpi) {
  if (mpi.local_rank() != 0 || resources.gpu >= 0) return;
  const MemoryEstimate estimate = estimate_memory(config, data, mpi.size(), *resources.backend);
  const NodeMemory node = node_memory(process_environment);
  if (const std::string text = memory_shortage(estimate, mpi.local_size(), mpi.rank() == 0, node); !text.empty())
    throw_error("{}", text);
}

// "10-19", or "12", as log.trace has it; nothing for what is no steps.
std::optional<std::string> trace_steps(const std::string& text) {
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.size() <= 15 && part.find_first_not_of("0123456789") == std::string::npos;
  };
  const size_t dash = text.find('-');
  const std::string first = text.substr(0, dash), last = dash == std::string::npos ? first : text.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) return std::nullopt;
  return fmt::format("[{}, {}]", first, last);
}

std::string check_trace(const std::string& text) {
  return text == kTraceAlone || trace_steps(text) ? "" : "expected the first and the last step, as --trace=10-19";
}

// A launch or a file that is wrong: every rank knows, rank 0 tells, all leave with the same code.
int train(const Options& options, const MpiEnvironment& mpi, Watchdog& watchdog, Config& config) {
  run_agreed(mpi.world(), [&] {
    config = load_config(options.file, options.set);
    check_world_size(config, mpi.size());
  });
  const Resources resources = claim_resources(config, mpi);
  const Arithmetic arithmetic = resources.backend->arithmetic(activation_type(config.train));
  watchdog.rest();
  log::info("{} rank(s) on {} node(s), {}", mpi.size(), mpi.nodes(), resources.describe(arithmetic));
  const std::string shortage =
      config.device.threads > 0
          ? thread_shortage(resources.threads, count_cpus(allowed_cpus()), mpi.local_size(), mpi.allowed_cores())
          : "";
  if (!shortage.empty() && mpi.local_rank() == 0) log::warning("{}", shortage);
  if (!arithmetic.missing.empty() && mpi.rank() == 0)
    log::warning("train.precision {}: {}, so products are computed in fp32: not faster than fp32",
                 config.train.precision, arithmetic.missing);

  std::unique_ptr<RunLog> log;
  std::unique_ptr<Trainer> trainer;
  run_agreed(*resources.communicator, [&] {
    log = std::make_unique<RunLog>(resolve_path(config, config.run.dir), mpi.rank() == 0 && !options.dry_run);
  });
  std::optional<StopSources> stop;
  if (!options.dry_run) stop = stop_sources(config.run, mpi.rank(), kProgramStart);
  trainer = std::make_unique<Trainer>(config, *resources.backend, *resources.communicator, *log, options.resume,
                                      std::move(stop),
                                      [&](const DataFacts& data) { check_memory(data, config, resources, mpi); });
  if (options.dry_run) {
    log::info("dry run: {} steps would follow; {}", trainer->total_steps() - trainer->steps_done(),
              trainer->arithmetic());
    return kSuccess;
  }
  const RunResult result = trainer->run();
  if (!result.epochs.empty()) log::info("{}", summary_table(result));
  return result.interrupted ? end_interrupted(result, config, mpi) : kSuccess;
}

}  // namespace

Command add_train(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("train", "Train on the ranks that mpirun or srun started");
  command->add_option("CONFIG", options->file, "YAML file")->required();
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_option(
      "--resume", options->resume.from,
      "Go on from a checkpoint: auto for the newest of run.dir (a new run where there is none), or a path");
  command->add_flag("--allow-batch-change", options->resume.allow_batch_change,
                    "Resume with another global batch than the checkpoint's run had");
  command->add_flag("--overwrite", options->resume.overwrite,
                    "Remove the checkpoints of run.dir that lie after the step the run starts with");
  command
      ->add_option("--start-timeout", options->start_timeout,
                   "Seconds until all ranks must have started and agreed on config and communicator")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--dry-run", options->dry_run, "Check everything, print the plan, train nothing");
  command->add_flag("--quiet", options->log.quiet, "Print warnings and errors only");
  command->add_flag("--all-ranks", options->log.all_ranks, "Print what rank 0 prints from every rank, with its number");
  command->add_option("--log-every", options->log_every, "Steps between two lines: --set log.every=N")
      ->check(CLI::PositiveNumber);
  command
      ->add_flag("--trace", options->trace,
                 "Also write a Chrome trace of steps 10 to 19, or of others (--trace=100-104), to run.dir/trace.json: "
                 "--set log.trace=[FIRST, LAST]")
      ->check(CLI::Validator(check_trace, "", "steps"));
  const std::map<std::string, log::Color> colors{
      {"auto", log::Color::automatic}, {"always", log::Color::always}, {"never", log::Color::never}};
  command->add_option("--color", options->log.color, "auto: on a terminal, unless NO_COLOR is set; always; never")
      ->transform(CLI::CheckedTransformer(colors));
  command->footer(
      "Exit code: 0 trained to the end, 1 failed, 2 wrong input, 75 asked to end (a signal, run.max_time, Slurm's time "
      "limit) and saved: go on with --resume auto.");
  return [options]() -> int {
    if (options->log_every) options->set.push_back(fmt::format("log.every={}", *options->log_every));
    if (!options->trace.empty())
      options->set.push_back("log.trace=" +
                             *trace_steps(options->trace == kTraceAlone ? kTraceDefault : options->trace));
    keep_large_blocks();
    const int early_rank = launcher_rank(process_environment);
    Watchdog watchdog(name_of_process(early_rank), kRunFailed);
    Fault(std::max(0, early_rank)).at_start();
    watchdog.expect("MPI_Init (--start-timeout)", options->start_timeout);
    MpiEnvironment mpi;
    watchdog.expect("the agreement on config and communicator (--start-timeout)", options->start_timeout);
    log::setup(mpi.rank(), mpi.size(), options->log);
    Config config;
    return tell_failures(
        mpi, watchdog, [&] { return config.distributed.timeout; },
        [&] { return train(*options, mpi, watchdog, config); });
  };
}

}  // namespace lockstep::app
