// train.precision in the real program: what it says at the start, what it logs, and that it learns like fp32.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

constexpr const char* kBlobs = R"(
model: {layers: [{linear: 16}, relu, {linear: 4}]}
data: {train: {kind: synthetic, name: teacher, samples: 256, shape: [8], classes: 4}}
train: {batch_size: 16, epochs: 2}
optimizer: {kind: sgd, lr: 0.05}
log: {every: 1}
)";

}  // namespace

TEST_CASE("the start names the precision and warns where it brings no speed") {
  for (const char* precision : {"bf16", "fp16"}) {
    const TrainingRun run = train_text(kBlobs, 2, {std::string("train.precision=") + precision});
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    const std::string& output = run.outcome.output;
    const size_t warning = output.find(std::string("train.precision ") + precision);
    CHECK(output.find(precision + std::string(" (")) != std::string::npos);
    const bool in_fp32 = output.find("(products in fp32)") != std::string::npos;
    CHECK(in_fp32 == (warning != std::string::npos));
    if (in_fp32) CHECK(output.find("train.precision", warning + 1) == std::string::npos);  // once, not once a rank
  }
  const TrainingRun plain = train_text(kBlobs, 1);
  CHECK(plain.outcome.output.find(", fp32,") != std::string::npos);
}

TEST_CASE("fp16 logs its loss scale and the steps it skipped") {
  const TrainingRun run = train_text(
      kBlobs, 2, {"train.precision=fp16", "train.loss_scale.growth_interval=2", "train.loss_scale.init=1048576"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  double scale = 1048576;
  int64_t skipped = 0, good = 0;
  for (const auto& step : run.of("step")) {
    if (step["skipped"] == skipped) {
      if (++good == 2) scale *= 2, good = 0;
    } else {
      scale /= 2, good = 0, ++skipped;
    }
    CHECK(step["skipped"] == skipped);
    CHECK(step["loss_scale"] == scale);
  }
  CHECK(skipped > 0);
  CHECK(run.of("step").size() == 16);  // 256 / 32 / epoch
  for (const auto& step : train_text(kBlobs, 1, {"train.precision=bf16"}).of("step"))
    CHECK_FALSE(step.contains("loss_scale"));
}

TEST_CASE("the MNIST ConvNet learns in bf16 and fp16 as in fp32") {  // short; bench/precision_accuracy is the long form
  if (!std::filesystem::exists(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "datasets/mnist")) {
    MESSAGE("SKIPPED: no MNIST");
    return;
  }
  std::vector<double> accuracies;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    const TrainingRun run =
        train("configs/mnist_quick.yaml", 2,
              {std::string("train.precision=") + precision, "data.train.count=6400", "data.val.count=2000"}, 200);
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    accuracies.push_back(run.of("eval").back()["accuracy"].get<double>());
    MESSAGE(precision << ": accuracy " << accuracies.back());
  }
  CHECK(accuracies[0] > 0.9);
  CHECK(std::abs(accuracies[1] - accuracies[0]) < 0.015);
  CHECK(std::abs(accuracies[2] - accuracies[0]) < 0.015);
}
