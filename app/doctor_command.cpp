// lockstep doctor [CONFIG]: what this machine and this launch offer, what a run would choose, and what is in its way.
// Alone, under mpirun and under srun; the exit code tells whether training would start.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "app/commands.h"
#include "comm/abort_all.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "core/log.h"
#include "train/doctor/doctor.h"
#include "train/doctor/machine.h"
#include "train/doctor/report.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
};

int tell(const RunFacts& facts, bool speaks) {
  const std::vector<Finding> found = findings(facts);
  if (speaks) std::fputs(doctor_report(facts, found).c_str(), stdout);
  return training_would_start(found) ? kSuccess : kWrongInput;
}

// Without a config the defaults are asked about; they need a model and data, which are not looked at.
constexpr const char* default_config =
    "model: {layers: [{linear: 1}]}\ndata: {train: {kind: synthetic, name: toy_train}}\n";

std::unique_ptr<Config> read_config(const Options& options, const MpiEnvironment& mpi, RunFacts& facts) {
  auto config = std::make_unique<Config>();
  facts.config = options.file;
  try {
    run_agreed(mpi.world(), [&] {
      *config = options.file.empty() ? parse_config(default_config, "defaults", options.set)
                                     : load_config(options.file, options.set);
    });
  } catch (const PoliteError& error) {
    facts.refusal = error.what();
    return nullptr;
  }
  return config;
}

// As the launcher has it, where MPI knows nothing of the others.
bool is_first(const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  return launcher == nullptr || std::string_view(environment(launcher->rank)) == "0";
}

// MPI did not start as the launcher meant it: the processes are strangers to each other, and one speaks for all.
int tell_without_mpi(RunFacts& facts, const char* problem, bool speaks) {
  facts.launch_problem = problem;
  facts.ranks = {machine_facts()};
  return tell(facts, speaks);
}

int doctor(const Options& options) {
  keep_large_blocks();
  RunFacts facts = facts_of_launch(process_environment);
  const bool first = is_first(process_environment);
  if (const std::string missing = missing_pmi(process_environment); !missing.empty() && first) {
    std::printf("WARNING: %s\n", missing.c_str());
    std::fflush(stdout);
  }
  std::unique_ptr<MpiEnvironment> mpi;
  try {
    mpi = std::make_unique<MpiEnvironment>();
  } catch (const PoliteError& error) {
    return tell_without_mpi(facts, error.what(), first);
  }
  log::setup(mpi->rank(), mpi->size(), {.quiet = true});
  try {
    const std::unique_ptr<Config> config = read_config(options, *mpi, facts);
    examine(config.get(), *mpi, facts);
    return tell(facts, mpi->rank() == 0);
  } catch (const std::exception& error) {
    if (mpi->size() > 1) abort_all(mpi->world(), kRunFailed, error);
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    return kRunFailed;
  }
}

}  // namespace

Command add_doctor(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "doctor", "Print what machine and launch offer and what training would choose; exit code 0: it would start");
  command->add_option("CONFIG", options->file, "YAML file; none: the defaults");
  command->add_option("--set", options->set, "Override a key: --set device.kind=cuda")->allow_extra_args(false);
  return [options] { return doctor(*options); };
}

}  // namespace lockstep::app
