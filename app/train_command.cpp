// lockstep train CONFIG: the program's purpose. Starts MPI, chooses device and communicator, trains, reports; makes
// sure that whatever goes wrong on any rank ends all of them with one clear message.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "comm/abort_all.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "core/log.h"
#include "train/config_batch.h"
#include "train/config_path.h"
#include "train/resources.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
  bool dry_run = false, quiet = false;
};

// A launch or a file that is wrong: every rank knows, rank 0 tells, all leave with the same code.
int train(const Options& options, const MpiEnvironment& mpi) {
  Config config;
  run_agreed(mpi.world(), [&] {
    config = load_config(options.file, options.set);
    check_world_size(config, mpi.size());
  });
  const Resources resources = claim_resources(config, mpi);
  const Arithmetic arithmetic = resources.backend->arithmetic(activation_type(config.train));
  log::info("{} rank(s) on {} node(s), {}", mpi.size(), mpi.nodes(), resources.describe(arithmetic));
  if (!arithmetic.missing.empty() && mpi.rank() == 0)
    log::warning("train.precision {}: {}, so products are computed in fp32: not faster than fp32",
                 config.train.precision, arithmetic.missing);

  std::unique_ptr<RunLog> log;
  std::unique_ptr<Trainer> trainer;
  run_agreed(*resources.communicator, [&] {
    log = std::make_unique<RunLog>(resolve_path(config, config.run.dir), mpi.rank() == 0 && !options.dry_run);
  });
  trainer = std::make_unique<Trainer>(config, *resources.backend, *resources.communicator, *log);
  if (options.dry_run) {
    log::info("dry run: {} steps would follow; {}", trainer->plan().total_steps(), trainer->arithmetic());
    return kSuccess;
  }
  const RunResult result = trainer->run();
  log::info("{}", summary_table(result));
  return kSuccess;
}

}  // namespace

Command add_train(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("train", "Train on the ranks that mpirun or srun started");
  command->add_option("CONFIG", options->file, "YAML file")->required();
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_flag("--dry-run", options->dry_run, "Check everything, print the plan, train nothing");
  command->add_flag("--quiet", options->quiet, "Print warnings and errors only");
  return [options]() -> int {
    keep_large_blocks();
    MpiEnvironment mpi;
    log::setup(mpi.rank(), mpi.size(), options->quiet);
    try {
      return train(*options, mpi);
    } catch (const PoliteError& error) {
      if (mpi.rank() == 0) std::fprintf(stderr, "lockstep: %s\n", error.what());
      return kWrongInput;
    } catch (const std::exception& error) {
      if (mpi.size() == 1) {
        std::fprintf(stderr, "lockstep: %s\n", error.what());
        return kRunFailed;
      }
      abort_all(mpi.world(), kRunFailed, error);
    }
  };
}

}  // namespace lockstep::app
