// lockstep tune CONFIG: threads per rank and bucket size with which a step takes the least time.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/ranks.h"
#include "comm/run_agreed.h"
#include "core/text_file.h"
#include "train/config_path.h"
#include "train/settings/tune.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file, output;
  std::vector<std::string> set;
  int64_t steps = 20;
};

int tune(const Options& options, const MpiEnvironment& mpi) {
  Config config;
  run_agreed(mpi.world(), [&] { config = load_config(options.file, options.set); });
  std::vector<TuneTrial> trials = tune_trials(config, mpi.allowed_cores(), mpi.local_size(), mpi.size());
  measure_trials(config, mpi, options.steps, trials);
  run_agreed(mpi.world(), [&] {
    if (mpi.rank() != 0) return;
    std::fputs(tune_table(trials).c_str(), stdout);
    if (options.output.empty()) return;
    config.device.threads = best_trial(trials).threads;
    config.distributed.bucket_mb = best_trial(trials).bucket_mb;
    write_text_file(options.output, to_yaml_at(config, options.output));
    std::printf("%s: the config with it\n", options.output.c_str());
  });
  return kSuccess;
}

}  // namespace

Command add_tune(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("tune", "Find the fastest number of threads and size of buckets");
  command->add_option("CONFIG", options->file, "YAML file")->required();
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_option("--steps", options->steps, "Steps timed for each")->capture_default_str();
  command->add_option("--out", options->output, "Write the config with what was found into this file");
  return [options] { return on_ranks([&](const MpiEnvironment& mpi) { return tune(*options, mpi); }); };
}

}  // namespace lockstep::app
