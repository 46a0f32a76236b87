// Gradients that are no numbers although every loss is one: who brought them, found before they are summed; and what
// overflows only where gradients travel in 16 bits. Real program, real mpirun.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

namespace fs = std::filesystem;

// Twelve rows x, y. Two ranks with batches of 2 have rows 4 and 6, and 5 and 7, in step 1.
struct Table {
  fs::path path = fs::temp_directory_path() / ("lockstep-gradients-" + std::to_string(getpid()) + ".csv");

  explicit Table(const std::vector<std::pair<int, std::string>>& changed) {
    std::vector<std::string> x(12, "0.5");
    for (const auto& [row, value] : changed) x[static_cast<size_t>(row)] = value;
    std::ofstream file(path);
    for (size_t row = 0; row < x.size(); ++row) file << x[row] << ",0.25\n";
  }
  ~Table() { fs::remove(path); }

  TrainingRun train(int ranks, const std::vector<std::string>& overrides) const {
    return train_text(
        "model: {layers: [{linear: {out: 1, bias: false}}]}\n"
        "data: {train: {kind: csv, file: " +
            path.string() +
            "}}\n"
            "sampler: {shuffle: false}\n"
            "train: {epochs: 1, batch_size: 2, loss: mse, on_nonfinite: skip, replica_check: 1}\n"
            "optimizer: {kind: adam, lr: 0.01}\n"
            "eval: {every: never}\n"
            "log: {every: 1}\n",
        ranks, overrides);
  }
};

void check_skipped(const TrainingRun& run, const std::string& message) {
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.of("step").size() == 3);
  CHECK(run.outcome.count("is skipped") == 1);
  CHECK(run.outcome.says(message));
}

}  // namespace

TEST_CASE("skip names the rank and rows whose gradient is not finite") {
  const Table table({{5, "1e25"}});
  for (const char* backend : {"shm", "mpi"}) {
    for (const char* overlap : {"true", "false"}) {
      check_skipped(table.train(2, {std::string("distributed.backend=") + backend,
                                    std::string("distributed.overlap=") + overlap}),
                    "step 1 is skipped: the gradient of 0.weight is not finite on rank 1 (rows 5, 7)");
    }
  }
  check_skipped(table.train(1, {"train.batch_size=4"}),
                "step 1 is skipped: the gradient of 0.weight is not finite on rank 0 (rows 4, 5, 6, 7)");
}

TEST_CASE("a gradient that overflows in fp16 is found and named and bf16 takes it") {
  const Table table({{5, "1e4"}});
  for (const char* backend : {"shm", "mpi"}) {
    const std::string chosen = std::string("distributed.backend=") + backend;
    check_skipped(table.train(2, {chosen, "distributed.compress=fp16"}),
                  "step 1 is skipped: the gradient of 0.weight overflows fp16 on rank 1 (rows 5, 7)");
    const TrainingRun wide = table.train(2, {chosen, "distributed.compress=bf16"});
    CHECK(wide.outcome.exit_code == 0);
    CHECK_FALSE(wide.outcome.says("is skipped"));
  }
}

TEST_CASE("a sum that overflows in fp16 is skipped where no rank's own does") {
  const Table table({{4, "4e4"}, {5, "4e4"}});
  for (const char* backend : {"shm", "mpi"}) {
    check_skipped(table.train(2, {std::string("distributed.backend=") + backend, "distributed.compress=fp16",
                                  "train.loss=l1", "train.reduction=sum"}),
                  "step 1 is skipped: the sum of the ranks' gradients is not finite, though each of them is");
  }
}

TEST_CASE("stop names what overflowed in fp16 too") {
  const Table table({{5, "1e4"}});
  const TrainingRun run = table.train(2, {"distributed.compress=fp16", "train.on_nonfinite=stop"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code != 0);
  CHECK_FALSE(run.outcome.timed_out);
  CHECK(run.outcome.says("step 1: the gradient of 0.weight overflows fp16 on rank 1 (rows 5, 7)"));
}
