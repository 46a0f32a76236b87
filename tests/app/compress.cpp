// Training with gradients in 16 bits: one and the same result however it is reduced, close to the one without.
#include <doctest/doctest.h>

#include <cmath>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

// 61 samples: short last windows, and on three ranks some without samples.
const char* const kModel = R"(
run: {seed: 3}
model: {layers: [{linear: 24}, tanh, {linear: 24}, relu, {linear: 3}]}
data: {train: {kind: synthetic, name: teacher, samples: 61, shape: [10], classes: 3}}
train: {epochs: 6, batch_size: 4, accumulate: 2, replica_check: 1}
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
eval: {every: never}
log: {every: 1}
distributed: {bucket_mb: 0, first_bucket_mb: 0}
)";

std::vector<double> losses(int ranks, std::vector<std::string> overrides, const std::string& compress) {
  overrides.push_back("distributed.compress=" + compress);
  const TrainingRun run = train_text(kModel, ranks, overrides);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  return run.losses();
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("compressed training has the same bits on shared memory and MPI with overlap and without") {
  for (const char* compress : {"bf16", "fp16"}) {
    for (const char* average : {"samples", "ranks"}) {
      const std::string averaged = std::string("distributed.average=") + average;
      const auto wanted = losses(3, {averaged, "distributed.backend=shm"}, compress);
      CHECK(losses(3, {averaged, "distributed.backend=shm", "distributed.overlap=false"}, compress) == wanted);
      CHECK(losses(3, {averaged, "distributed.backend=mpi"}, compress) == wanted);
      CHECK(losses(3, {averaged, "distributed.backend=mpi", "distributed.bucket_mb=1"}, compress) == wanted);
    }
  }
}

TEST_CASE("compressed training stays close to the exact one and is not it") {
  for (const int ranks : {2, 4}) {
    const auto exact = losses(ranks, {}, "none"), bf16 = losses(ranks, {}, "bf16"), fp16 = losses(ranks, {}, "fp16");
    CHECK(exact.back() < 0.9 * exact.front());  // it learns
    CHECK(largest_difference(exact, bf16) > 0);
    CHECK(largest_difference(exact, bf16) < 1e-2);
    CHECK(largest_difference(exact, fp16) > 0);
    CHECK(largest_difference(exact, fp16) < 1e-3);
  }
}
