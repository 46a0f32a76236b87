// lockstep eval CHECKPOINT: the validation of a saved model, again or on other data, on any number of ranks.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/ranks.h"
#include "comm/mpi/mpi_communicator.h"
#include "train/resources.h"
#include "train/saved/saved_eval.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> data, set;
};

int eval(const Options& options, const MpiEnvironment& mpi) {
  SavedRun run;
  {
    MpiCommunicator world(mpi.world(), {});
    run = read_saved_run(options.checkpoint, options.set, world);
  }
  const Resources resources = claim_resources(run.config, mpi);
  Communicator& communicator = *resources.communicator;
  const std::unique_ptr<Dataset> data = evaluation_data(run, options.data, communicator);
  const std::unique_ptr<Network> network = load_network(run, data->sample_shape(), *resources.backend, communicator);
  const Metrics metrics = evaluate(run, *data, *network, *resources.backend, communicator);
  if (mpi.rank() != 0) return kSuccess;
  const bool own_data = options.data.empty();
  std::printf("%s\n", describe(run).c_str());
  std::fputs(evaluation_text(metrics, own_data ? logged_values(run) : std::vector<LoggedValue>()).c_str(), stdout);
  return kSuccess;
}

}  // namespace

Command add_eval(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("eval", "Evaluate a checkpoint, on any number of ranks");
  command->add_option("CHECKPOINT", options->checkpoint, "A checkpoint, a last or best file, or a run directory")
      ->required();
  command->add_option("--data", options->data,
                      "Other data than the run's validation set: TABLE.csv, or X.npy Y.npy, or IMAGES LABELS (idx)");
  command
      ->add_option("--set", options->set, "Override a key of data, device, distributed or eval: --set device.threads=2")
      ->allow_extra_args(false);
  command->footer(
      "Exit code: 0 evaluated, 1 failed, 2 wrong input. The numbers are those that the run logged at the checkpoint, "
      "to "
      "the bit, on any number of ranks; see docs/after_training.md.");
  return [options] { return on_ranks([&](const MpiEnvironment& mpi) { return eval(*options, mpi); }); };
}

}  // namespace lockstep::app
