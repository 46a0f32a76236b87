// Replicas that drift apart and losses that are no numbers: what the program says, on which rank and step, and what it
// does. Real program, real mpirun.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* kDrift = R"(
model: {layers: [{linear: 8}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 64, shape: [4], classes: 2}}
train: {epochs: 2, batch_size: 4}
optimizer: {kind: sgd, lr: 0.1}
eval: {every: never}
log: {every: 1}
)";

// Twelve rows of which row 5 holds a NaN; two ranks with batches of 2 have it in step 1, on rank 1.
struct DamagedTable {
  fs::path path = fs::temp_directory_path() / ("lockstep-damaged-" + std::to_string(getpid()) + ".csv");
  DamagedTable() {
    std::ofstream file(path);
    for (int row = 0; row < 12; ++row)
      file << (row == 5 ? "nan" : std::to_string(0.1 * row)) << "," << 0.05 * row * row << "," << row % 2 << "\n";
  }
  ~DamagedTable() { fs::remove(path); }

  TrainingRun train(int ranks, const std::vector<std::string>& overrides) const {
    return train_text(
        "model: {layers: [{linear: 4}, batch_norm, relu, {linear: 2}]}\n"
        "data: {train: {kind: csv, file: " +
            path.string() +
            "}}\n"
            "sampler: {shuffle: false}\n"
            "train: {epochs: 2, batch_size: 2}\n"
            "optimizer: {kind: adam, lr: 0.01}\n"
            "eval: {every: never}\n"
            "log: {every: 1, watch: [\"checksum:0.weight\"]}\n",
        ranks, overrides);
  }
};

}  // namespace

TEST_CASE("replicas that drift apart are found at the step that was asked for") {
  const TrainingRun run = train_text(kDrift, 2, {"distributed.sync=false", "train.replica_check=3"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code != 0);
  CHECK_FALSE(run.outcome.timed_out);
  CHECK(run.outcome.says(
      "after 3 steps the replicas are not equal: parameter 0.weight differs between rank 0 and rank 1"));
  CHECK(run.of("step").size() == 2);  // steps 0 and 1 were told, the check comes before the line of step 2
}

TEST_CASE("replicas in lockstep pass every check") {
  const TrainingRun run = train_text(kDrift, 3, {"train.replica_check=1"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.of("end").size() == 1);
}

TEST_CASE("a loss that is no number stops all ranks and names rank step and rows") {
  const DamagedTable table;
  const TrainingRun run = table.train(2, {});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code != 0);
  CHECK_FALSE(run.outcome.timed_out);
  CHECK(run.outcome.says("step 1: the loss is not finite on rank 1 (rows 5, 7)"));
}

TEST_CASE("the first bad step is named when losses are only reduced later") {
  const DamagedTable table;
  const TrainingRun run = table.train(2, {"log.every=1000"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code != 0);
  CHECK(run.outcome.says("step 1: the loss is not finite on rank 1 (rows 5, 7)"));
}

TEST_CASE("skip leaves out the update on all ranks and goes on") {
  const DamagedTable table;
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const std::string batch = "train.global_batch_size=" + std::to_string(ranks == 3 ? 6 : 4);
    const TrainingRun run =
        table.train(ranks, {"train.on_nonfinite=skip", "train.replica_check=1", batch, "train.batch_size=null"});
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    const auto steps = run.of("step");
    REQUIRE(steps.size() == (ranks == 3 ? 4 : 6));  // a skipped step is a step
    size_t skipped = 0;
    for (const auto& step : steps) skipped += step["loss"].is_null();
    CHECK(skipped == 2);  // once an epoch; the running statistics were restored, or all later losses would be null too
    CHECK(run.outcome.says("is skipped: the loss is not finite on rank " + std::string(ranks == 1   ? "0"
                                                                                       : ranks == 2 ? "1"
                                                                                                    : "2")));
  }
}

TEST_CASE("skip with accumulation leaves out the whole window") {
  const DamagedTable table;
  const TrainingRun run = table.train(2, {"train.on_nonfinite=skip", "train.accumulate=2", "train.replica_check=1"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto steps = run.of("step");
  REQUIRE(steps.size() == 4);  // windows of two and one micro-steps, twice
  CHECK(steps[0]["loss"].is_null());
  CHECK_FALSE(steps[1]["loss"].is_null());
  CHECK(run.outcome.says("step 0 is skipped: the loss is not finite on rank 1 (rows 1, 3, 5, 7)"));
}

TEST_CASE("ignore goes on with what comes out") {
  const DamagedTable table;
  const TrainingRun run = table.train(2, {"train.on_nonfinite=ignore"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.of("step").back()["loss"].is_null());
}
