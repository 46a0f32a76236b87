// lockstep predict CHECKPOINT: what a saved model says of files or of a folder of images, on any number of ranks.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/ranks.h"
#include "comm/mpi/mpi_communicator.h"
#include "train/resources.h"
#include "train/saved/saved_predict.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string checkpoint, data, output;
  std::vector<std::string> set;
  bool scores = false;
};

int predict_on(const Options& options, const MpiEnvironment& mpi) {
  SavedRun run;
  {
    MpiCommunicator world(mpi.world(), {});
    run = read_saved_run(options.checkpoint, options.set, world);
  }
  const Resources resources = claim_resources(run.config, mpi);
  Communicator& communicator = *resources.communicator;
  const PredictionInput input = prediction_input(run, options.data, communicator);
  const std::unique_ptr<Network> network =
      load_network(run, input.data->sample_shape(), *resources.backend, communicator);
  const int64_t samples = predict(run, input, *network, options.scores, options.output, communicator);
  if (mpi.rank() == 0)
    std::printf("%s\n%s: %lld samples\n", describe(run).c_str(), options.output.c_str(),
                static_cast<long long>(samples));
  return kSuccess;
}

}  // namespace

Command add_predict(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      parent.add_subcommand("predict", "Write what a checkpoint's model says of samples, on any number of ranks");
  command->add_option("CHECKPOINT", options->checkpoint, "A checkpoint, a last or best file, or a run directory")
      ->required();
  command->add_option(
      "--data", options->data,
      "IMAGES (idx), X.npy, TABLE.csv or a folder of PNG and JPEG images; none: the run's validation set");
  command->add_option("-o,--out", options->output, "FILE.csv or FILE.npy")->required();
  command->add_flag("--scores", options->scores, "The network's outputs as they are instead of probabilities");
  command
      ->add_option("--set", options->set,
                   "Override a key of data, device, distributed or eval: --set eval.batch_size=64")
      ->allow_extra_args(false);
  command->footer(
      "Exit code: 0 written, 1 failed, 2 wrong input. The file has the same bytes for any number of ranks; its columns "
      "are "
      "in docs/after_training.md.");
  return [options] { return on_ranks([&](const MpiEnvironment& mpi) { return predict_on(*options, mpi); }); };
}

}  // namespace lockstep::app
