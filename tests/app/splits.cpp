// One global batch of 32 in six splits (batch x accumulation x ranks): every split's loss curve is that of the float64
// reference, within what float32 kernels can differ (tests/golden/README.md).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "support/golden.h"
#include "support/training_run.h"

using namespace lockstep::test;

namespace {

struct Split {
  int batch, accumulate, ranks;
};
constexpr Split kSplits[] = {{32, 1, 1}, {16, 2, 1}, {16, 1, 2}, {8, 4, 1}, {8, 1, 4}, {4, 2, 4}};

TrainingRun run_split(const std::string& config, const Split& split, std::vector<std::string> overrides, double limit) {
  overrides.push_back("train.batch_size=" + std::to_string(split.batch));
  overrides.push_back("train.accumulate=" + std::to_string(split.accumulate));
  return train(config, split.ranks, overrides, limit);
}

void check_first_steps(const std::string& config, const nlohmann::json& reference, double early, double late) {
  const auto expected = reference.get<std::vector<double>>();
  for (const Split& split : kSplits) {
    CAPTURE(split.batch);
    CAPTURE(split.accumulate);
    CAPTURE(split.ranks);
    const TrainingRun run = run_split(
        config, split,
        {"train.epochs=1", "train.max_steps=51", "log.every=1", "eval.every=never", "eval.at_start=false"}, 100);
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    const std::vector<double> losses = run.losses();
    REQUIRE(losses.size() == expected.size());
    double worst_early = 0, worst_late = 0;
    for (size_t step = 0; step < losses.size(); ++step) {
      double& worst = step < 7 ? worst_early : worst_late;
      worst = std::max(worst, std::abs(losses[step] - expected[step]));
    }
    MESSAGE(split.batch << " x " << split.accumulate << " x " << split.ranks << ": steps 0-6 within " << worst_early
                        << ", steps 7-50 within " << worst_late);
    CHECK(worst_early <= early);
    CHECK(worst_late <= late);
  }
}

// Float32 paths part for a while: a single evaluation may stray (a step whose ReLU flipped) and come back;
// the median over the epoch's evaluations may not.
struct EpochTolerance {
  double train_loss, test_loss, median_test_loss;
  int correct;
};

// `reference`: train_loss [step, loss] every 50 steps and test [step, loss, correct] every 200.
void check_epoch(const std::string& config, const Split& split, const nlohmann::json& reference,
                 const EpochTolerance& tolerance) {
  const TrainingRun run = run_split(config, split, {"train.epochs=1"}, 800);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto steps = run.of("step"), evals = run.of("eval");
  REQUIRE(steps.size() == reference["train_loss"].size());
  for (size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i]["step"] == reference["train_loss"][i][0]);
    CHECK(std::abs(steps[i]["loss"].get<double>() - reference["train_loss"][i][1].get<double>()) <=
          tolerance.train_loss);
  }
  REQUIRE(evals.size() == reference["test"].size());
  std::vector<double> strays;
  for (size_t i = 0; i < evals.size(); ++i) {
    strays.push_back(std::abs(evals[i]["loss"].get<double>() - reference["test"][i][1].get<double>()));
    CHECK(evals[i]["step"] == reference["test"][i][0]);
    CHECK(strays.back() <= tolerance.test_loss);
    CHECK(std::abs(evals[i]["correct"].get<int>() - reference["test"][i][2].get<int>()) <= tolerance.correct);
    CHECK(evals[i]["count"] == 10000);
  }
  std::ranges::nth_element(strays, strays.begin() + std::ssize(strays) / 2);
  CHECK(strays[strays.size() / 2] <= tolerance.median_test_loss);
}

// Seen as 8 x 1 x 4 with the tree's order of sums: step 600 strays by 2.06e-3, step 800 is back at 8e-5, the median is
// 3.8e-4. PyTorch's two float32 runs stray by 1.57e-3 and 6e-4 at most, their medians are 5e-4 and 2.5e-4. So a single
// evaluation may stray by twice what was seen, and the median, which shows a wrong average, is held at 1e-3.
void mnist_epoch(const Split& split) {
  check_epoch("configs/articles/004_mnist.yaml", split,
              golden("mnist_curve.json")["mnist"][0]["reference_float64_full_epoch"],
              {.train_loss = 1.5e-2, .test_loss = 4e-3, .median_test_loss = 1e-3, .correct = 12});
}

// Epochs of all splits take minutes; the two that are most unlike each other are always made.
bool is_long_run() {
  if (std::getenv("LOCKSTEP_LONG_TESTS") != nullptr) return true;
  MESSAGE("SKIPPED: takes minutes; set LOCKSTEP_LONG_TESTS=1");
  return false;
}

bool fashion_is_missing() {
  if (std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/datasets/fashion-mnist/train-images-idx3-ubyte.gz")) return false;
  MESSAGE("SKIPPED: Fashion-MNIST is not there: run datasets/fetch fashion-mnist");
  return true;
}

// There is no float64 reference here: the one there is, a float32 run of PyTorch, is itself up to 1.5e-3, 16 and 8e-3
// away from an older PyTorch's. Seen as 4 x 2 x 4: one evaluation 3.5e-3 off with Winograd, another 4.6e-3 off with
// direct convolutions, the medians 1.4e-4 and 2.7e-4, the last ones 1.6e-4 at most.
void fashion_epoch(const Split& split) {
  check_epoch("configs/articles/004_fashion_mnist.yaml", split, golden("mnist_curve.json")["fashion"][0]["full_epoch"],
              {.train_loss = 1.5e-2, .test_loss = 6e-3, .median_test_loss = 1e-3, .correct = 20});
}

}  // namespace

TEST_CASE("004: six splits of one batch on MNIST over 51 steps") {
  check_first_steps("configs/articles/004_mnist.yaml",
                    golden("mnist_curve.json")["mnist"][0]["reference_float64_first51"], 1e-5, 1e-3);
}

TEST_CASE("004: six splits of one batch on Fashion-MNIST over 51 steps") {
  if (fashion_is_missing()) return;
  check_first_steps("configs/articles/004_fashion_mnist.yaml",
                    golden("mnist_curve.json")["fashion"][0]["reference_float64_first51"], 1e-5, 1e-5);
}

TEST_CASE("004: an epoch of MNIST as 32 x 1 x 1") { mnist_epoch({32, 1, 1}); }
TEST_CASE("004: an epoch of MNIST as 4 x 2 x 4") { mnist_epoch({4, 2, 4}); }

TEST_CASE("004: an epoch of MNIST in the other four splits") {
  if (!is_long_run()) return;
  for (const Split& split : {Split{16, 2, 1}, Split{16, 1, 2}, Split{8, 4, 1}, Split{8, 1, 4}}) {
    CAPTURE(split.batch);
    CAPTURE(split.ranks);
    mnist_epoch(split);
  }
}

TEST_CASE("004: an epoch of Fashion-MNIST as 16 x 1 x 2") {
  if (!fashion_is_missing()) fashion_epoch({16, 1, 2});
}

TEST_CASE("004: an epoch of Fashion-MNIST in the other five splits") {
  if (!is_long_run() || fashion_is_missing()) return;
  for (const Split& split : kSplits) {
    CAPTURE(split.batch);
    CAPTURE(split.ranks);
    if (split.batch != 16 || split.ranks != 2) fashion_epoch(split);
  }
}
