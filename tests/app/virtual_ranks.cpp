// Virtual ranks on the real program: an epoch of MNIST's ConvNet with dropout, and of a residual net with batch norm,
// end with the same bytes on 1, 2, 4 and 8 ranks, over shared memory and over MPI, and so do all numbers and
// checkpoints on the way.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "support/run_folder.h"
#include "support/training_run.h"

using namespace lockstep::test;

namespace {

// {} is the folder of MNIST.
constexpr const char* kData =
    "data:\n"
    "  train: {{kind: idx, images: {0}/train-images-idx3-ubyte.gz, labels: {0}/train-labels-idx1-ubyte.gz, "
    "normalize: {{mean: 0.1307, std: 0.3081}}}}\n"
    "  val: {{kind: idx, images: {0}/t10k-images-idx3-ubyte.gz, labels: {0}/t10k-labels-idx1-ubyte.gz, "
    "normalize: {{mean: 0.1307, std: 0.3081}}}}\n";
constexpr const char* kConvNet =
    "model: {preset: mnist_example}\n"
    "train: {epochs: 1, batch_size: 16, virtual_ranks: 8}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "log: {every: 10, per_rank: true}\n"
    "checkpoint: {every: 100, keep: 10}\n";
// Kept small: strides first, then a residual block at 7 x 7.
constexpr const char* kResidual =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 5, stride: 4, padding: 2}}\n"
    "    - batch_norm\n"
    "    - {relu: {}, name: block}\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - {add: block}\n"
    "    - relu\n"
    "    - flatten\n"
    "    - {dropout: 0.25}\n"
    "    - {linear: 10}\n"
    "train: {epochs: 1, batch_size: 16, virtual_ranks: 8}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "log: {every: 10, per_rank: true}\n"
    "checkpoint: {every: 100, keep: 10}\n";

std::string on_mnist(const char* model) {
  return model + fmt::format(fmt::runtime(kData), LOCKSTEP_SOURCE_DIR "/datasets/mnist");
}

struct Launch {
  int ranks;
  const char* backend;
};

// Losses (of every virtual rank, too), rates and validations, weights, and every file of the checkpoints on the way.
void check_epoch(const char* model, const std::vector<Launch>& launches) {
  const RunFolder folder(on_mnist(model).c_str());
  Told expected;
  std::map<std::string, std::string> checkpoints;
  for (const Launch& launch : launches) {
    CAPTURE(launch.ranks);
    CAPTURE(launch.backend);
    const std::string name = fmt::format("{}{}", launch.backend, launch.ranks);
    const Outcome outcome =
        folder.train(name, launch.ranks, {"--set", fmt::format("distributed.backend={}", launch.backend)}, {}, 400);
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
    const Told found = told(folder / name);
    const auto files = checkpoint_bytes(folder / name);
    std::filesystem::remove_all(folder / name);
    if (expected.events.empty()) {
      expected = found;
      checkpoints = files;
      const nlohmann::json validation = nlohmann::json::parse(found.events.back());
      MESSAGE("weights " << found.digest << ", " << validation["correct"] << " of 10000");
      CHECK(validation["correct"].get<int>() > 9500);
      CHECK(nlohmann::json::parse(found.events.front())["rank_loss"].size() == 8);
      CHECK(files.size() > 10);
    } else {
      CHECK((found.events == expected.events));
      CHECK(found.digest == expected.digest);
      CHECK((files == checkpoints));
    }
  }
}

bool long_tests() { return std::getenv("LOCKSTEP_LONG_TESTS") != nullptr; }

}  // namespace

TEST_CASE("virtual ranks: an epoch of MNIST's ConvNet with dropout ends with the same bytes") {
  if (long_tests()) {
    check_epoch(kConvNet, {{1, "auto"}, {2, "shm"}, {4, "shm"}, {8, "shm"}, {2, "mpi"}, {4, "mpi"}, {8, "mpi"}});
  } else {
    check_epoch(kConvNet, {{1, "auto"}, {2, "shm"}, {4, "mpi"}});
  }
}

TEST_CASE("virtual ranks: an epoch of a residual net with batch norm ends with the same bytes") {
  check_epoch(kResidual, {{1, "auto"}, {2, "shm"}, {4, "shm"}, {8, "shm"}, {2, "mpi"}, {4, "mpi"}, {8, "mpi"}});
}

TEST_CASE("virtual ranks can not be dealt to three ranks") {
  const TrainingRun run = train_text(on_mnist(kResidual), 3, {}, 60);
  CHECK(run.outcome.exit_code == 2);
  CHECK(run.outcome.output.find("train.virtual_ranks 8 can't be dealt to 3 ranks: start 1, 2, 4, ... or 8 of them") !=
        std::string::npos);
}
