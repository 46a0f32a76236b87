// What large batches need, in whole runs: scaled learning rates with warm-up, LARS and LAMB on any number of ranks,
// averaged weights in evaluation, the gradient noise scale.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

constexpr const char* kNet = R"(
model: {layers: [{linear: 16}, relu, {linear: 3}]}
data:
  train: {kind: synthetic, name: random, samples: 64, shape: [5], classes: 3, seed: 1}
  val: {kind: synthetic, name: random, samples: 32, shape: [5], classes: 3, seed: 2}
train: {epochs: 1}
optimizer: {kind: sgd, lr: 0.1}
eval: {every: 1 steps}
log: {every: 1}
device: {threads: 1}
)";

TrainingRun run(int ranks, const std::vector<std::string>& overrides) {
  TrainingRun run = train_text(kNet, ranks, overrides, 60);
  REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
  return run;
}

std::vector<double> field(const TrainingRun& run, const std::string& event, const std::string& name) {
  std::vector<double> values;
  for (const auto& entry : run.of(event)) values.push_back(entry[name]);
  return values;
}

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("the learning rate follows the global batch") {
  const std::vector<std::string> linear{"optimizer.lr_reference_batch=4", "train.batch_size=8"};
  const TrainingRun one = run(1, linear);
  CHECK_EQ(field(one, "step", "lr").front(), doctest::Approx(0.2));
  CHECK_NE(one.outcome.output.find("lr 0.2 = 0.1 x 8/4 (linear)"), std::string::npos);
  const TrainingRun two = run(2, linear);
  CHECK_EQ(field(two, "step", "lr").front(), doctest::Approx(0.4));
  std::vector<std::string> root = linear;
  root.emplace_back("optimizer.lr_scaling=sqrt");
  CHECK_EQ(field(run(2, root), "step", "lr").front(), doctest::Approx(0.2));
  root.emplace_back("train.accumulate=4");
  CHECK_EQ(field(run(2, root), "step", "lr").front(), doctest::Approx(0.4));
}

TEST_CASE("a scaled rate is warmed up from the unscaled one") {
  const TrainingRun two = run(2, {"optimizer.lr_reference_batch=4", "train.batch_size=4", "schedule.warmup=4",
                                  "schedule.warmup_start_factor=0.5"});
  const std::vector<double> lr = field(two, "step", "lr");
  REQUIRE_EQ(lr.size(), 8);
  CHECK_EQ(lr[0], doctest::Approx(0.1));
  CHECK_EQ(lr[2], doctest::Approx(0.15));
  CHECK_EQ(lr[4], doctest::Approx(0.2));
  CHECK_EQ(lr[7], doctest::Approx(0.2));
}

TEST_CASE("one-cycle refuses a reference batch") {
  const TrainingRun refused =
      train_text(kNet, 1, {"optimizer.lr_reference_batch=4", "schedule={kind: one_cycle, max_lr: 1}"}, 60);
  CHECK_NE(refused.outcome.exit_code, 0);
  CHECK_NE(refused.outcome.output.find("scale that one"), std::string::npos);
}

TEST_CASE("lars and lamb train the same on 1 and 2 and 4 ranks") {
  for (const char* optimizer :
       {"optimizer={kind: lars, lr: 5, momentum: 0.9, weight_decay: 1e-4}", "optimizer={kind: lamb, lr: 0.05}"}) {
    CAPTURE(optimizer);
    const TrainingRun one = run(1, {optimizer, "train.batch_size=16"});
    for (const int ranks : {2, 4}) {
      const TrainingRun many = run(ranks, {optimizer, "train.batch_size=" + std::to_string(16 / ranks)});
      CHECK_LE(worst(many.losses(), one.losses()), 1e-5);
      CHECK_LE(worst(field(many, "eval", "loss"), field(one, "eval", "loss")), 1e-5);
    }
    CHECK_GT(std::abs(field(one, "eval", "loss").back() - field(one, "eval", "loss").front()), 1e-4);
  }
}

TEST_CASE("averaged weights are evaluated and do not touch the training") {
  const TrainingRun plain = run(2, {"train.batch_size=4"});
  const TrainingRun none = run(2, {"train.batch_size=4", "train.ema=0"});
  const TrainingRun averaged = run(2, {"train.batch_size=4", "train.ema=0.9"});
  CHECK_EQ(worst(averaged.losses(), plain.losses()), 0);
  CHECK_LE(worst(field(none, "eval", "loss"), field(plain, "eval", "loss")), 1e-6);
  CHECK_GT(worst(field(averaged, "eval", "loss"), field(plain, "eval", "loss")), 1e-5);
}

// One weight w, every sample has loss (w - 2.5)^2: what is evaluated is known from the weights that were watched.
TEST_CASE("the evaluated average is that of a plain loop over the watched weights on 1 and 2 and 3 ranks") {
  constexpr double kDecay = 0.8;
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const TrainingRun run = train_text(R"(
model: {layers: [{linear: {out: 1, bias: false}, name: fc}]}
data:
  train: {kind: synthetic, name: constant, samples: 23, values: [2.5]}
  val: {kind: synthetic, name: constant, samples: 5, values: [2.5]}
train: {batch_size: 2, epochs: 2, loss: mse, ema: 0.8}
optimizer: {kind: sgd, lr: 0.1}
eval: {every: 1 steps, at_start: true}
log: {every: 1, watch: ["value:fc.weight[0,0]"]}
device: {threads: 1}
)",
                                       ranks, {}, 60);
    REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
    double average = 0;
    std::vector<double> expected;
    for (const auto& probe : run.of("probe")) {
      for (const auto& value : probe["values"]) CHECK_EQ(value, probe["values"][0]);
      const double weight = probe["values"][0];
      if (probe["when"] == "after broadcast") average = weight;
      if (probe["when"] != "step") continue;
      average = kDecay * average + (1 - kDecay) * weight;
      expected.push_back((average - 2.5) * (average - 2.5));
    }
    CHECK_GE(expected.size(), 8);
    CHECK_GT(expected.front(), expected.back() + 0.1);
    CHECK_LE(worst(field(run, "eval", "loss"), expected), 1e-5);
  }
}

TEST_CASE("the noise scale is that of the ranks' gradients and logged at logged steps only") {
  const std::vector<std::string> noise{"train.batch_size=4", "log.noise_scale=true", "log.every=3"};
  const TrainingRun two = run(2, noise);
  for (const auto& event : two.of("step")) {
    CHECK_GT(event["noise_trace"].get<double>(), 0);  // random labels: samples disagree
    CHECK_EQ(event["step"].get<int>() % 3 == 0 || event["step"] == 7, true);
  }
  const TrainingRun plain = run(2, {"train.batch_size=4", "log.every=3"});
  CHECK_EQ(worst(two.losses(), plain.losses()), 0);
  CHECK_FALSE(plain.of("step")[0].contains("noise_scale"));
  const TrainingRun one = run(1, noise);
  CHECK(one.of("step")[0]["noise_scale"].is_null());  // no second gradient to compare with
}

TEST_CASE("the noise scale is the same with overlapped buckets and in accumulation windows") {
  const std::vector<std::string> noise{"train.batch_size=3", "train.accumulate=2", "log.noise_scale=true",
                                       "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"};
  std::vector<std::string> off(noise.begin(), noise.begin() + 3);  // one bucket
  off.emplace_back("distributed.overlap=false");
  const TrainingRun overlapped = run(3, noise), whole = run(3, off);
  for (const char* name : {"noise_trace", "noise_gradient_square"})
    CHECK_LE(worst(field(overlapped, "step", name), field(whole, "step", name)), 1e-6);
  CHECK_GT(field(whole, "step", "noise_trace").front(), 1e-3);
}

TEST_CASE("the noise scale refuses gradients that are no means of samples") {
  const TrainingRun refused = train_text(kNet, 1, {"log.noise_scale=true", "distributed.average=ranks"}, 60);
  CHECK_NE(refused.outcome.exit_code, 0);
  CHECK_NE(refused.outcome.output.find("log.noise_scale: needs distributed.average: samples"), std::string::npos);
}

TEST_CASE("equal samples on unequal shares have a noise scale of zero") {
  std::vector<std::string> rows{"train.batch_size=4", "log.noise_scale=true", "train.loss=mse",
                                "model={layers: [{linear: 1}]}", "data.val=null"};
  rows.emplace_back("data.train={kind: synthetic, name: constant, samples: 23, values: [2.5]}");
  const TrainingRun run = train_text(kNet, 3, rows, 60);
  REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
  const auto steps = run.of("step");
  REQUIRE_EQ(steps.size(), 2);
  for (const auto& step : steps) {  // shares 4 4 4, then 4 4 3
    CHECK_GT(step["noise_gradient_square"].get<double>(), 1e-3);
    CHECK_LE(std::abs(step["noise_trace"].get<double>()), 1e-5 * step["noise_gradient_square"].get<double>());
  }
}
