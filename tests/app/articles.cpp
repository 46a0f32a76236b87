// The articles' scripts as configs, run under real mpirun and compared with the numbers PyTorch gave.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/golden.h"
#include "support/training_run.h"

using namespace lockstep::test;

namespace {

const nlohmann::json& golden_run(const std::string& name) {
  const nlohmann::json& seeds = golden("seeds.json");
  for (const auto& run : seeds["runs"]) {
    if (run["name"] == name) return run;
  }
  FAIL("no golden run ", name);
  return seeds;
}

void check_near(const std::vector<double>& values, const std::vector<double>& expected, double tolerance) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(values[i] == doctest::Approx(expected[i]).epsilon(0).scale(1).epsilon(tolerance));
  }
}

std::vector<double> golden_losses(const nlohmann::json& rank) {
  std::vector<double> losses;
  for (const auto& step : rank["steps"]) losses.push_back(step["loss"]);
  return losses;
}

// Every rank's losses and sample indices of every step.
void check_ranks(const TrainingRun& run, const std::string& name) {
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto& ranks = golden_run(name)["ranks"];
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    CAPTURE(rank);
    check_near(run.rank_losses(rank), golden_losses(ranks[rank]), 1e-6);
    if (!ranks[rank]["steps"][0].contains("indices")) continue;
    std::vector<std::vector<int64_t>> indices;
    for (const auto& step : ranks[rank]["steps"]) indices.push_back(step["indices"]);
    CHECK(run.rank_indices(rank) == indices);
  }
}

}  // namespace

TEST_CASE("000: the toy network's losses on one rank") {
  const TrainingRun run = train("configs/articles/000_toy.yaml", 1);
  check_ranks(run, "s0");
  CHECK(run.events[0]["parameters"] == 752);
  const std::vector<std::string> printed{"0.75", "0.65", "0.44", "0.13", "0.03", "0.00"};
  for (size_t i = 0; i < printed.size(); ++i) CHECK(fmt::format("{:.2f}", run.losses()[i]) == printed[i]);
  CHECK(run.of("eval").back()["accuracy"] == 1.0);
}

TEST_CASE("000: all-reduce gives both ranks the gradient of the joint batch") {
  const TrainingRun run = train("configs/articles/000_all_reduce.yaml", 2);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.rank_indices(0) == std::vector<std::vector<int64_t>>{{12, 9}});
  CHECK(run.rank_indices(1) == std::vector<std::vector<int64_t>>{{10, 6}});
  CHECK(fmt::format("{:.4f}", run.rank_losses(0)[0]) == "0.5934");
  CHECK(fmt::format("{:.4f}", run.rank_losses(1)[0]) == "0.5830");
  const std::vector<double> gradients = run.probe("gradient:0.weight[0,0]", "step");
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[0] == gradients[1]);
  CHECK(fmt::format("{:.6f}", gradients[0]) == "0.000697");

  const TrainingRun joint = train("configs/articles/000_all_reduce.yaml", 1, {"train.batch_size=4"});
  CHECK(joint.rank_indices(0) == std::vector<std::vector<int64_t>>{{12, 10, 9, 6}});  // the same four samples
  CHECK(joint.probe("gradient:0.weight[0,0]", "step")[0] == doctest::Approx(gradients[0]).epsilon(1e-4));
}

TEST_CASE("001: first principles on one and two ranks") {
  check_ranks(train("configs/articles/001_first_principles.yaml", 1), "s1_w1");
  const TrainingRun two = train("configs/articles/001_first_principles.yaml", 2);
  check_ranks(two, "s1_w2");
  CHECK(two.of("eval").back()["accuracy"] == 1.0);
}

TEST_CASE("001 and 003: the mean of the ranks' means as DDP takes it") {
  const std::vector<std::string> ddp{"distributed.average=ranks"};
  check_ranks(train("configs/articles/001_first_principles.yaml", 2, ddp), "s1_w2");
  check_ranks(train("configs/articles/001_four_ranks.yaml", 4, ddp), "s1_w4_f4");
  const TrainingRun four = train("configs/articles/003_torchrun.yaml", 4, ddp);
  for (size_t rank = 0; rank < 4; ++rank)
    check_near(four.rank_losses(rank), golden_run("s3_w4")["ranks"][rank]["losses"].get<std::vector<double>>(), 1e-6);
  for (double checksum : four.probe("checksum:0.weight", "step")) CHECK(fmt::format("{:.6f}", checksum) == "-4.676729");
}

TEST_CASE("001: without reshuffling and without synchronisation") {
  const std::string config = "configs/articles/001_first_principles.yaml";
  check_ranks(train(config, 2, {"sampler.reshuffle=false"}), "s1_w2_noset");
  check_ranks(train(config, 2, {"distributed.sync=false"}), "s1_w2_nowrap");
  check_ranks(train(config, 2, {"distributed.sync=false", "sampler.reshuffle=false"}), "s1_w2_noset_nowrap");
}

TEST_CASE("001: four ranks with noisy copies of the points") {
  const TrainingRun run = train("configs/articles/001_four_ranks.yaml", 4);
  check_ranks(run, "s1_w4_f4");
  CHECK(run.of("eval").back()["accuracy"] == 1.0);
}

TEST_CASE("002: the complete script on 1 2 and 4 ranks") {
  for (int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const TrainingRun run = train("configs/articles/002_complete_script.yaml", ranks);
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    const auto& expected = golden_run("s2_w" + std::to_string(ranks))["ranks"][0]["epochs"];
    const auto evals = run.of("eval");
    REQUIRE(evals.size() == 2);
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      CHECK(evals[epoch]["loss"].get<double>() == doctest::Approx(expected[epoch]["loss"].get<double>()).epsilon(1e-6));
      CHECK(evals[epoch]["accuracy"].get<double>() == doctest::Approx(expected[epoch]["acc"].get<double>()));
      CHECK(evals[epoch]["count"] == 101);
    }
    if (ranks == 2) CHECK(evals[0]["shards"] == std::vector<int>{51, 50});
  }
}

TEST_CASE("003: own data on every rank and equal checksums") {
  const TrainingRun two = train("configs/articles/003_torchrun.yaml", 2);
  CAPTURE(two.outcome.output);
  REQUIRE(two.outcome.exit_code == 0);
  const std::vector<std::string> printed{"1.0865", "0.9100", "0.8038"};
  for (size_t i = 0; i < 3; ++i) CHECK(fmt::format("{:.4f}", two.rank_losses(0)[i]) == printed[i]);
  for (double checksum : two.probe("checksum:0.weight", "step")) CHECK(fmt::format("{:.6f}", checksum) == "-4.635065");
  CHECK(two.probe("checksum:0.weight", "step").size() == 2);

  const TrainingRun four = train("configs/articles/003_torchrun.yaml", 4);
  for (size_t rank = 0; rank < 4; ++rank)
    check_near(four.rank_losses(rank), golden_run("s3_w4")["ranks"][rank]["losses"].get<std::vector<double>>(), 1e-6);
  for (double checksum : four.probe("checksum:0.weight", "step")) CHECK(fmt::format("{:.6f}", checksum) == "-4.676729");
  CHECK(four.probe("checksum:0.weight", "step").size() == 4);
}

TEST_CASE("003: the broadcast gives every rank the weights of rank 0") {
  const TrainingRun run = train("configs/articles/003_broadcast.yaml", 2);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto before = run.probe("value:0.weight[0,0]", "before broadcast");
  const auto after = run.probe("value:0.weight[0,0]", "after broadcast");
  REQUIRE(before.size() == 2);
  CHECK(fmt::format("{:+.4f}", before[0]) == "-0.0037");
  CHECK(fmt::format("{:+.4f}", before[1]) == "+0.2576");
  CHECK(fmt::format("{:+.4f}", after[0]) == "-0.0037");
  CHECK(fmt::format("{:+.4f}", after[1]) == "-0.0037");
}
