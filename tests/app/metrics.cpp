// Validation metrics and early stopping through the real program: the same values on any number of ranks, one step at
// which all ranks stop.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "support/training_run.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

// A learning rate that moves no weight, and one row per forward pass: all splits see the same outputs to the bit.
const std::string kClasses = R"(
model: {layers: [{linear: 16}, relu, {linear: 6}]}
data:
  train: {kind: synthetic, name: teacher, samples: 48, classes: 6, shape: [5]}
  val: {kind: synthetic, name: teacher, samples: 37, classes: 6, shape: [5], seed: 1}
train: {batch_size: 4, epochs: 1}
optimizer: {kind: sgd, lr: 1e-30}
eval: {batch_size: 1, metrics: [loss, accuracy, top_3, top_5, precision, recall, f1, confusion, auroc]}
device: {threads: 1}
)";

const std::string kValues = R"(
model: {layers: [{linear: 16}, relu, {linear: 2}]}
data:
  train: {kind: synthetic, name: normal_regression, samples: 48, shape: [5], target_width: 2}
  val: {kind: synthetic, name: normal_regression, samples: 37, shape: [5], target_width: 2, seed: 1}
train: {batch_size: 4, epochs: 1, loss: mse}
optimizer: {kind: sgd, lr: 1e-30}
eval: {batch_size: 1, metrics: [mae, r2, mse]}
device: {threads: 1}
)";

// The eval event of the run without what differs between launches.
nlohmann::json evaluation(const std::string& config, int ranks, const std::string& backend) {
  const TrainingRun run = train_text(config, ranks, {"distributed.backend=" + backend, "eval.every=1 epoch"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto events = run.of("eval");
  REQUIRE(events.size() == 1);
  nlohmann::json event = events.front();
  for (const char* key : {"seconds", "shards", "step"}) event.erase(key);
  return event;
}

// Rows whose only feature is zero.
struct Table {
  fs::path path;
  explicit Table(const std::vector<int>& labels) {
    static int made = 0;
    path = fs::temp_directory_path() / ("lockstep-table-" + std::to_string(getpid()) + "-" + std::to_string(made++));
    std::ofstream file(path);
    for (const int label : labels) file << "0," << label << "\n";
  }
  ~Table() { fs::remove(path); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
};

void check_all_ranks(const std::string& config) {
  const nlohmann::json one = evaluation(config, 1, "auto");
  MESSAGE(one.dump());
  for (const char* backend : {"shm", "mpi"}) {
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(ranks);
      CAPTURE(backend);
      CHECK(evaluation(config, ranks, backend) == one);
    }
  }
}

}  // namespace

TEST_CASE("metrics of classes are the same on 1 2 3 and 4 ranks") { check_all_ranks(kClasses); }
TEST_CASE("metrics of real values are the same on 1 2 3 and 4 ranks") { check_all_ranks(kValues); }

TEST_CASE("five validation rows count once each on 1 2 3 4 and 8 ranks") {
  // The model learns to say class 0 whatever it sees, which is right for row 0 only.
  const Table training({0, 0, 0, 0, 0, 0, 0, 1}), validation({0, 1, 1, 1, 1});
  const std::string config =
      "model: {layers: [{linear: 2}]}\ndata: {train: {kind: csv, file: " + training.path.string() +
      "}, val: {kind: csv, file: " + validation.path.string() +
      "}}\ntrain: {batch_size: 1, epochs: 20}\noptimizer: {kind: sgd, lr: 1}\n";
  for (const int ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    const TrainingRun run = train_text(config, ranks, {"device.threads=1"});
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    const auto event = run.of("eval").back();
    CHECK(event["accuracy"] == 0.2);
    CHECK(event["correct"] == 1);
    CHECK(event["count"] == 5);
    const auto shards = event["shards"].get<std::vector<int>>();
    CHECK(shards.size() == static_cast<size_t>(ranks));
    CHECK(std::accumulate(shards.begin(), shards.end(), 0) == 5);
  }
}

TEST_CASE("the training loss of the first step is that of the global batch on any number of ranks") {
  const std::vector<std::string> overrides{"train.batch_size=null", "train.global_batch_size=24", "log.every=1"};
  const double one = train_text(kClasses, 1, overrides).losses().at(0);
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    CHECK(std::abs(train_text(kClasses, ranks, overrides).losses().at(0) - one) <= 1e-6 * one);
  }
}

TEST_CASE("the file has every metric and the console line is short") {
  const TrainingRun run = train_text(kClasses, 2, {"eval.metrics=[f1, confusion]"});
  CAPTURE(run.outcome.output);
  const auto event = run.of("eval").back();
  CHECK_FALSE(event.contains("accuracy"));
  REQUIRE(event["confusion"].size() == 6);
  int64_t counted = 0;
  for (const auto& row : event["confusion"]) {
    REQUIRE(row.size() == 6);
    for (const auto& cell : row) {
      CHECK(cell.is_number_integer());
      counted += cell.get<int64_t>();
    }
  }
  CHECK(counted == 37);
  CHECK(event["f1_per_class"].size() == 6);
  CHECK(run.outcome.says("  f1 0."));
  CHECK_FALSE(run.outcome.says("confusion"));
}

TEST_CASE("early stopping ends all ranks after the same step with exit code 0") {
  for (const int ranks : {1, 2, 3}) {
    for (const char* backend : {"auto", "mpi"}) {
      CAPTURE(ranks);
      const TrainingRun run =
          train_text(kClasses, ranks,
                     {"train.early_stopping={metric: val.f1, patience: 2}", "train.epochs=20", "eval.every=2 steps",
                      "log.every=5", std::string("distributed.backend=") + backend});
      CAPTURE(run.outcome.output);
      REQUIRE(run.outcome.exit_code == 0);
      // Evaluations after steps 2, 4 and 6, the last two without progress.
      REQUIRE(run.of("end").size() == 1);
      const auto end = run.of("end").front();
      CHECK(end["steps"] == 7);
      CHECK(end["stopped_early"] == true);
      CHECK(end["best"]["metric"] == "val.f1");
      CHECK(end["best"]["step"] == 2);
      CHECK(end["best"]["value"] == run.of("eval").front()["f1"]);
      CHECK(run.of("step").back()["step"] == 6);
      CHECK(run.outcome.says("stopped early after 7 steps, best val.f1 "));
    }
  }
}

TEST_CASE("early stopping between epochs tells the last step too") {
  const TrainingRun run =
      train_text(kClasses, 2, {"train.early_stopping={patience: 1}", "train.epochs=20", "log.every=1000"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.of("end").front()["steps"] == 12);
  CHECK(run.of("end").front()["best"]["step"] == 5);
  CHECK(run.of("step").back()["step"] == 11);
}

TEST_CASE("early stopping is one decision although every rank sees other numbers") {
  std::string config = kClasses;
  for (const char* samples : {"48,", "37,"}) {
    const size_t at = config.find(samples);
    config.insert(at + 3, " seed_per_rank: true,");
  }
  // Replicas that drift apart and data of their own: each rank by itself would stop at another step.
  const TrainingRun run = train_text(config, 3,
                                     {"train.early_stopping={metric: val.accuracy, patience: 1}", "train.epochs=50",
                                      "eval.every=1 steps", "optimizer.lr=0.5", "distributed.sync=false"},
                                     60);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto end = run.of("end").front();
  CHECK(end["stopped_early"] == true);
  CHECK(end["steps"] == run.of("eval").back()["step"].get<int>() + 1);
  CHECK(end["steps"] < 600);
}

TEST_CASE("a run that gets better to its end is not stopped and tells the best") {
  const TrainingRun run = train_text(kClasses, 2, {"train.early_stopping=val.accuracy", "train.epochs=2"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.of("end").front()["stopped_early"] == false);
  CHECK(run.of("end").front()["steps"] == 12);
  CHECK(run.outcome.says("best val.accuracy "));
  CHECK_FALSE(run.outcome.says("stopped early"));
}

TEST_CASE("the best model is the first best of the logged values with and without early stopping") {
  for (const char* more : {"checkpoint.best=val.accuracy", "checkpoint.best=null"}) {
    for (const int ranks : {1, 3}) {
      CAPTURE(more);
      CAPTURE(ranks);
      const std::string field = std::string(more).ends_with("null") ? "loss" : "accuracy";
      const TrainingRun run = train_text(kClasses, ranks, {more, "eval.every=1 steps", "optimizer.lr=3"});
      CAPTURE(run.outcome.output);
      REQUIRE(run.outcome.exit_code == 0);
      nlohmann::json best;
      for (const auto& event : run.of("eval")) {
        const double sign = field == "loss" ? -1 : 1;
        const bool better = best.is_null() || sign * event[field].get<double>() > sign * best["value"].get<double>();
        CHECK(event["best"] == better);
        if (better) best = {{"metric", "val." + field}, {"value", event[field]}, {"step", event["step"]}};
      }
      CHECK(run.of("end").front()["best"] == best);
      CHECK(run.of("end").front()["stopped_early"] == false);
    }
  }
}

TEST_CASE("a plateau watches a metric of the validation") {
  const TrainingRun run = train_text(
      kClasses, 2,
      {"schedule={kind: plateau, metric: val.f1_weighted, mode: max, patience: 0, factor: 0.5, plateau_eps: 0}",
       "eval.every=1 steps", "log.every=1", "train.epochs=1"});
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  const auto steps = run.of("step");
  REQUIRE(steps.size() == 6);
  CHECK(steps[2]["lr"] == 1e-30);  // the evaluation after step 1 was the first
  CHECK(steps[3]["lr"] == 0.5e-30);
  CHECK(steps[4]["lr"] == 0.25e-30);
}

TEST_CASE("a metric that does not suit ends the run before its first step") {
  const auto refused = [](const std::string& config, const std::string& set, const std::string& message) {
    const TrainingRun run = train_text(config, 2, {set}, 60);
    CAPTURE(run.outcome.output);
    CHECK(run.outcome.exit_code == 2);
    CHECK(run.outcome.says("lockstep: " + message));
    CHECK(run.of("step").empty());
  };
  refused(kValues, "eval.metrics=[mse, accuracy]",
          "eval.metrics: accuracy needs class targets (train.loss cross_entropy), found real values");
  refused(kClasses, "eval.metrics=[top_10]", "eval.metrics: top_10 needs 10 outputs of the model or more, found 6");
  refused(kClasses, "checkpoint.best=val.mse",
          "checkpoint.best val.mse: eval.metrics does not compute it here, but val.loss, val.accuracy");
  refused(kClasses, "train.early_stopping={metric: val.mse}",
          "train.early_stopping.metric val.mse: eval.metrics does not compute it here, but val.loss, val.accuracy");
  refused(
      kValues, "schedule={kind: plateau, metric: val.accuracy}",
      "schedule.metric val.accuracy: eval.metrics does not compute it here, but val.loss, val.mae, val.r2, val.mse");
}
