// lockstep eval under mpirun: the numbers a run has logged at each of its checkpoints come back to the bit, whatever
// the number of ranks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/run_folder.h"
#include "support/saved_command.h"

using namespace lockstep::test;

namespace {

constexpr const char* kConvNet = R"(
model: {layers: [{conv2d: {out: 8, kernel: 3, padding: 1}}, batch_norm, relu, {max_pool2d: 2}, flatten, {dropout: 0.2}, {linear: 3}]}
data:
  train: {kind: synthetic, name: random, samples: 203, shape: [2, 8, 8], classes: 3, seed: 5}
  val: {kind: synthetic, name: random, samples: 101, shape: [2, 8, 8], classes: 3, seed: 6}
train: {epochs: 3, batch_size: 8, ema: 0.9}
optimizer: {kind: adamw, lr: 0.01}
eval: {every: 1 epoch, batch_size: 16, metrics: [accuracy, f1, auroc]}
checkpoint: {every: 1 epoch, keep: 10}
)";

constexpr const char* kRegression = R"(
model: {layers: [{linear: 16}, tanh, {linear: 1}]}
data:
  train: {kind: synthetic, name: normal_regression, samples: 120, shape: [4], seed: 5}
  val: {kind: synthetic, name: normal_regression, samples: 50, shape: [4], seed: 6}
train: {epochs: 1, batch_size: 10, loss: mse}
optimizer: {kind: sgd, lr: 0.01}
eval: {metrics: [mse, r2]}
checkpoint: {every: 1 epoch}
)";

// The line that begins with a word, without it.
std::string line_of(const Outcome& outcome, const std::string& word) {
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word + " ")) return line.substr(word.size());
  }
  return "";
}

// The losses of all validations, in the run's log, as its digits.
std::vector<double> logged_losses(const RunFolder& folder, const std::string& run) {
  std::vector<double> losses;
  for (const std::string& text : told(folder / run).events) {
    const nlohmann::json event = nlohmann::json::parse(text);
    if (event["event"] == "eval") losses.push_back(event["loss"].get<double>());
  }
  return losses;
}

void check_every_checkpoint(const char* config, int trained_on, const std::vector<std::string>& arguments) {
  const RunFolder folder(config);
  const Outcome trained = folder.train("run", trained_on, arguments);
  REQUIRE_MESSAGE(trained.exit_code == 0, trained.output);
  const std::vector<double> losses = logged_losses(folder, "run");
  size_t checkpoint = 0;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/checkpoints")) {
    if (entry.is_directory()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  REQUIRE(paths.size() == losses.size());
  for (const auto& path : paths) {
    std::string expected;
    for (const int ranks : {1, 2, 3}) {
      CAPTURE(ranks);
      CAPTURE(path);
      const Outcome eval = run_lockstep_on(ranks, {"eval", path.string()});
      REQUIRE_MESSAGE(eval.exit_code == 0, eval.output);
      CHECK(std::stod(line_of(eval, "loss")) == losses[checkpoint]);
      CHECK(eval.says("as logged, to the bit"));
      CHECK_FALSE(eval.says("differs by"));
      if (expected.empty()) expected = eval.output;
      CHECK(eval.output == expected);
    }
    ++checkpoint;
  }
}

}  // namespace

TEST_CASE("eval: every checkpoint gives what was logged at it to the bit on 1 2 and 3 ranks") {
  check_every_checkpoint(kConvNet, 2, {});
}

TEST_CASE("eval: the same after a run with virtual ranks and after one of a regression on 3 ranks") {
  check_every_checkpoint(kConvNet, 1, {"--set", "train.virtual_ranks=4", "--set", "train.epochs=1"});
  check_every_checkpoint(kRegression, 3, {});
}

TEST_CASE("eval: pointers and run folders are checkpoints and the confusion matrix counts every sample") {
  const RunFolder folder(kConvNet);
  REQUIRE(folder.train("run", 2, {}).exit_code == 0);
  for (const char* path : {"run", "run/checkpoints", "run/checkpoints/last"}) {
    const Outcome eval = run_lockstep({"eval", (folder / path).string()});
    REQUIRE_MESSAGE(eval.exit_code == 0, eval.output);
    CHECK(eval.says("step-000000039 (39 steps, averaged weights)"));
    CHECK(eval.says("confusion (rows: targets, columns: predictions)"));
    std::istringstream table(eval.output.substr(eval.output.find("predictions)\n") + 13));
    double sum = 0, hits = 0, value = 0, index = 0;
    for (int column = 0; column < 3; ++column) table >> index;
    for (int row = 0; row < 3; ++row) {
      table >> index;
      for (int column = 0; column < 3; ++column) table >> value, sum += value, hits += row == column ? value : 0;
    }
    CHECK(sum == 101);
    CHECK(std::stod(line_of(eval, "correct")) == hits);
  }
  const Outcome best = run_lockstep_on(2, {"eval", (folder / "run/checkpoints/best").string()});
  CHECK(best.exit_code == 0);
  CHECK(best.says("as logged, to the bit"));
}

TEST_CASE("eval: other data and harmless keys are taken and keys of the training are refused") {
  const RunFolder folder(kConvNet);
  REQUIRE(folder.train("run", 1, {"--set", "train.epochs=1"}).exit_code == 0);
  const std::string run = (folder / "run").string();
  std::vector<float> x(20 * 2 * 8 * 8, 0.5F);
  std::vector<int64_t> y(20, 2);
  write_npy(folder / "x.npy", {20, 2, 8, 8}, x);
  write_npy(folder / "y.npy", {20}, y);
  const Outcome other =
      run_lockstep_on(2, {"eval", run, "--data", (folder / "x.npy").string(), (folder / "y.npy").string(), "--set",
                          "device.threads=1", "--set", "eval.batch_size=7", "--set", "eval.metrics=[accuracy]"});
  REQUIRE_MESSAGE(other.exit_code == 0, other.output);
  CHECK(line_of(other, "samples").find(" 20") != std::string::npos);
  CHECK_FALSE(other.says("logged"));
  const Outcome refused = run_lockstep_on(2, {"eval", run, "--set", "train.loss=mse"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("--set train.loss: belongs to the training that has been"));
  CHECK(refused.count("belongs to the training") == 1);
  write_npy(folder / "small.npy", {20, 2, 4, 4}, std::vector<float>(20 * 2 * 4 * 4, 0.5F));
  const Outcome misfit =
      run_lockstep_on(2, {"eval", run, "--data", (folder / "small.npy").string(), (folder / "y.npy").string()});
  CHECK(misfit.exit_code == 2);
  CHECK(misfit.says("expected the shape [3, 32]"));
}

TEST_CASE("eval: a damaged checkpoint and a missing one are one message on all ranks") {
  const RunFolder folder(kRegression);
  REQUIRE(folder.train("run", 1, {}).exit_code == 0);
  const Outcome missing = run_lockstep_on(3, {"eval", (folder / "nothing").string()});
  CHECK(missing.exit_code == 2);
  CHECK(missing.count("lockstep: ") == 1);
  std::ofstream(folder / "run/checkpoints/step-000000012/model.safetensors", std::ios::app) << "x";
  const Outcome damaged = run_lockstep_on(2, {"eval", (folder / "run/checkpoints/last").string()});
  CHECK(damaged.exit_code == 2);
  CHECK(damaged.says("model.safetensors"));
}
