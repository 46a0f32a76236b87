// Batch normalisation in whole runs: with statistics over all ranks, a global batch of 8 trains the same network on 1,
// 2 and 4 ranks, also where the last batch leaves ranks without samples; with each rank's own statistics it doesn't.
#include <doctest/doctest.h>

#include <cmath>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

// 17 samples in batches of 8: the third step has one sample, on rank 0.
constexpr const char* kNet = R"(
model:
  layers:
    - {conv2d: {out: 4, kernel: 3}, name: conv}
    - {batch_norm: {}, name: bn}
    - relu
    - flatten
    - {linear: 8, name: fc}
    - {linear: 3, name: out}
data:
  train: {kind: synthetic, name: random, samples: 17, shape: [2, 6, 6], classes: 3, seed: 1}
  val: {kind: synthetic, name: random, samples: 11, shape: [2, 6, 6], classes: 3, seed: 2}
train: {epochs: 3}
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
eval: {every: 1 steps, batch_size: 4}
log: {every: 1, watch: ["checksum:conv.weight", "checksum:bn.weight", "checksum:bn.bias"]}
device: {threads: 1}
)";

TrainingRun run(int ranks, int batch, const std::string& policy, std::vector<std::string> more = {}) {
  more.push_back("train.batch_size=" + std::to_string(batch));
  more.push_back("distributed.batch_norm=" + policy);
  TrainingRun run = train_text(kNet, ranks, more, 60);
  REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
  return run;
}

std::vector<double> eval_losses(const TrainingRun& run) {
  std::vector<double> losses;
  for (const auto& event : run.of("eval")) losses.push_back(event["loss"]);
  return losses;
}

double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]) / (std::abs(b[i]) + 1e-3));
  return worst;
}

void check_equal(const TrainingRun& found, const TrainingRun& expected) {
  CHECK_LE(worst_difference(found.losses(), expected.losses()), 1e-5);
  CHECK_LE(worst_difference(eval_losses(found), eval_losses(expected)), 1e-5);
  for (const char* name : {"checksum:conv.weight", "checksum:bn.weight", "checksum:bn.bias"}) {
    const double wanted = expected.probe(name, "step").at(0);
    for (const double value : found.probe(name, "step"))
      CHECK_LE(std::abs(value - wanted), 1e-5 * std::abs(wanted) + 1e-5);
  }
}

}  // namespace

TEST_CASE("synchronised batch norm trains the same on 1 and 2 and 4 ranks") {
  const TrainingRun one = run(1, 8, "sync");
  REQUIRE_EQ(one.losses().size(), 9);
  check_equal(run(2, 4, "sync"), one);
  check_equal(run(4, 2, "sync"), one);
}

TEST_CASE("synchronised batch norm in accumulation windows trains the same on 1 and 2 and 3 ranks") {
  const std::vector<std::string> window{"train.accumulate=2"};
  const TrainingRun one = run(1, 6, "sync", window);
  check_equal(run(2, 3, "sync", window), one);
  check_equal(run(3, 2, "sync", window), one);
}

TEST_CASE("batch norm with own statistics differs between splits and evaluates alike on all ranks") {
  const TrainingRun one = run(1, 8, "rank0"), four = run(4, 2, "rank0"), average = run(4, 2, "average");
  CHECK_GT(worst_difference(four.losses(), one.losses()), 1e-3);
  CHECK_LE(worst_difference(average.losses(), four.losses()), 1e-6);  // training is not concerned
  CHECK_GT(worst_difference(eval_losses(average), eval_losses(four)), 1e-6);
}

TEST_CASE("batch norm over the ranks needs synchronised gradients") {
  const TrainingRun refused = train_text(kNet, 1, {"distributed.sync=false", "distributed.batch_norm=sync"}, 60);
  CHECK_NE(refused.outcome.exit_code, 0);
  CHECK_NE(refused.outcome.output.find("distributed.batch_norm needs distributed.sync: true"), std::string::npos);
}

TEST_CASE("a batch of one value per channel is refused before the first step") {
  const std::vector<std::string> narrow{
      "model={layers: [flatten, {linear: 4}, {batch_norm: {}, name: bn9}, {linear: 3}]}", "data.train.samples=13",
      "train.batch_size=2", "log.watch=[]"};  // shares of 5, 4 and 4
  const TrainingRun refused = train_text(kNet, 3, narrow, 60);
  CHECK_NE(refused.outcome.exit_code, 0);
  CHECK(refused.of("step").empty());
  const std::string& output = refused.outcome.output;
  const std::string wanted =
      "Expected more than 1 value per channel when training, but in step 2 rank 0 has one sample for the batch norm "
      "'bn9'";
  const size_t at = output.find(wanted);
  REQUIRE_MESSAGE(at != std::string::npos, output);
  CHECK_EQ(output.find(wanted, at + 1), std::string::npos);  // told once
  CHECK_EQ(output.find("MPI_ABORT"), std::string::npos);
  std::vector<std::string> dropped = narrow;
  dropped.emplace_back("sampler.drop_last=true");
  CHECK_EQ(train_text(kNet, 3, dropped, 60).outcome.exit_code, 0);
}
