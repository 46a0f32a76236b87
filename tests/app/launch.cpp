// What a user meets when something is wrong: one clear message, a non-zero exit code on all ranks, never a hang.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

const char* const kToy = R"(
model: {layers: [{linear: 4}, relu, {linear: 2}]}
data:
  train: {kind: synthetic, name: toy_train}
train: {epochs: 1, batch_size: 2}
)";

void check_polite(const TrainingRun& run, const std::string& message) {
  CAPTURE(run.outcome.output);
  CHECK_FALSE(run.outcome.timed_out);
  CHECK(run.outcome.seconds < 10);
  CHECK(run.outcome.exit_code == 2);
  CHECK(run.outcome.count(message) == 1);
  CHECK_FALSE(run.outcome.says("MPI_ABORT"));
}

}  // namespace

TEST_CASE("an unknown key is told once and ends all ranks alike") {
  check_polite(train_text(std::string(kToy) + "optimizer: {learnign_rate: 0.1}\n", 2), "unknown key 'learnign_rate'");
}

TEST_CASE("a world_size that was not launched is refused") {
  check_polite(train_text(kToy, 2, {"distributed.world_size=4"}), "world_size 4");
}

TEST_CASE("a model that does not fit into the node's memory is refused before it is allocated") {
  const TrainingRun run = train_text(kToy, 2, {"model.layers=[{linear: 300000}, relu, {linear: 300000}, {linear: 2}]"});
  check_polite(run, "TiB more memory (each: ");
  CHECK(run.outcome.says("free"));
  CHECK(run.outcome.says("lower train.batch_size"));
}

TEST_CASE("a missing data file names the file") {
  check_polite(train_text(kToy, 2, {"data.train={kind: npy, x: nowhere.npy, y: nowhere.npy}"}), "nowhere.npy");
}

TEST_CASE("a model that does not fit the labels is refused") {
  check_polite(train_text(kToy, 2, {"model.layers=[{linear: 1}]"}), "the labels have 2 classes");
}

TEST_CASE("a device that is not there is refused") {
  check_polite(train_text(kToy, 2, {"device.kind=cuda"}), "device.kind cuda: ");
}

TEST_CASE("NCCL without a GPU is refused") {
  check_polite(train_text(kToy, 2, {"distributed.backend=nccl"}), "needs device.kind: cuda");
}

TEST_CASE("a layer that the loss does not reach is named on all ranks alike") {
  check_polite(
      train_text(kToy, 2,
                 {"model.layers=[{linear: 4, name: body}, {linear: 3, name: head}, {linear: 2, input: body}]"}),
      "layer 'head' is not used by any later layer: the loss does not depend on it");
}

TEST_CASE("a model that is frozen as a whole has nothing to train") {
  check_polite(train_text(kToy, 2, {"optimizer.groups=[{match: ['*'], trainable: false}]"}),
               "nothing to train: all 4 parameters are frozen");
}

TEST_CASE("a frozen pattern that matches nothing is refused") {
  check_polite(train_text(kToy, 3, {"optimizer.groups=[{match: ['encoder.*'], trainable: false}]"}),
               "no parameter matches 'encoder.*'");
}

TEST_CASE("empty loaders are refused before training") {
  check_polite(train_text(kToy, 8, {"sampler.drop_last=true", "sampler.uneven=pad"}), "every loader is empty");
}

TEST_CASE("a rank that fails alone during the run ends all ranks with its message") {
  // Rank 0's log goes to a full disk: only rank 0 notices, while rank 1 is on its way into a collective.
  const auto directory = std::filesystem::temp_directory_path() / ("lockstep-full-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::filesystem::create_symlink("/dev/full", directory / "metrics.jsonl");
  const Outcome outcome = run_process(
      mpirun(2, {LOCKSTEP_BINARY, "train", LOCKSTEP_SOURCE_DIR "/configs/articles/001_first_principles.yaml", "--set",
                 "run.dir=" + directory.string()}),
      30);
  std::filesystem::remove_all(directory);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.seconds < 10);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.says("rank 0: "));
  CHECK(outcome.says("No space left on device"));
}

TEST_CASE("a dry run checks everything and trains nothing") {
  const Outcome outcome =
      run_process(mpirun(2, {LOCKSTEP_BINARY, "train",
                             LOCKSTEP_SOURCE_DIR "/configs/articles/001_first_principles.yaml", "--dry-run"}),
                  30);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.says("global batch 4 = batch_size 2 x world_size 2 x accumulate 1"));
  CHECK_FALSE(outcome.says("loss"));
}

TEST_CASE("uneven data is counted exactly on any number of ranks") {
  // 5 samples on 4 ranks, batch 1: two steps of 4 and 1 samples; every sample once per epoch.
  for (const char* backend : {"shm", "mpi"}) {
    const TrainingRun run = train_text(kToy, 4,
                                       {"train.batch_size=1", "log.every=1", "log.per_rank=true", "log.indices=true",
                                        std::string("distributed.backend=") + backend});
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    std::vector<int> seen(5, 0);
    for (size_t rank = 0; rank < 4; ++rank) {
      for (const auto& micro_step : run.rank_indices(rank)) {
        for (int64_t row : micro_step) ++seen[static_cast<size_t>(row)];
      }
    }
    CHECK(seen == std::vector<int>{1, 1, 1, 1, 1});
    CHECK(run.of("step")[0]["samples"] == 4);
    CHECK(run.of("step")[1]["samples"] == 1);
  }
}

TEST_CASE("training over shared memory and over MPI gives the same bits") {
  const std::string config = "configs/articles/002_complete_script.yaml";
  const TrainingRun shm = train(config, 4, {"distributed.backend=shm"}),
                    mpi = train(config, 4, {"distributed.backend=mpi"});
  REQUIRE(shm.outcome.exit_code == 0);
  REQUIRE(mpi.outcome.exit_code == 0);
  CHECK(shm.losses() == mpi.losses());
  for (size_t rank = 0; rank < 4; ++rank) CHECK(shm.rank_losses(rank) == mpi.rank_losses(rank));
}

TEST_CASE("validation of a network with batch norm is the same on any backend and repeatable") {
  // Without agreed buffers each rank would judge its shard with statistics of its own.
  const std::string yaml = R"(
run: {seed: 3}
model: {layers: [{linear: 8}, batch_norm, relu, {linear: 2}]}
data:
  train: {kind: synthetic, name: teacher, samples: 64, shape: [4], classes: 2, seed: 1}
  val: {kind: synthetic, name: teacher, samples: 33, shape: [4], classes: 2, seed: 2}
train: {epochs: 2, batch_size: 8}
optimizer: {kind: sgd, lr: 0.1}
)";
  const TrainingRun shm = train_text(yaml, 2, {"distributed.backend=shm"}),
                    mpi = train_text(yaml, 2, {"distributed.backend=mpi"});
  CAPTURE(shm.outcome.output);
  REQUIRE(shm.outcome.exit_code == 0);
  REQUIRE(mpi.outcome.exit_code == 0);
  CHECK(shm.of("eval").back()["loss"] == mpi.of("eval").back()["loss"]);
  CHECK(shm.of("eval").back()["count"] == 33);
}
