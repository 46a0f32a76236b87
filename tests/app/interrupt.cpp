// Runs that are asked to end: a signal to any one rank, at any place, or run.max_time. All ranks save the same step
// once, leave with exit code 75, and the run that goes on ends with the bits of one that was never interrupted.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

// Windows of three micro-steps, the last of an epoch shorter; running statistics and dropout; validations of several
// batches, some between and some at the ends of epochs. A micro-step takes a millisecond, so every one is a place to
// end.
constexpr const char* kModel = R"(
model:
  layers: [{conv2d: {out: 16, kernel: 3}}, batch_norm, relu, {max_pool2d: 8}, flatten, {dropout: 0.3}, {linear: 3}]
data:
  train: {kind: synthetic, name: random, samples: 203, shape: [1, 96, 96], classes: 3, seed: 5}
  val: {kind: synthetic, name: random, samples: 53, shape: [1, 96, 96], classes: 3, seed: 6}
train: {epochs: 3, batch_size: 8, accumulate: 3}
optimizer: {kind: adamw, lr: 0.01}
schedule: {kind: plateau, patience: 0, factor: 0.7}
eval: {every: 2 steps, batch_size: 5}
log: {every: 1}
checkpoint: {every: 4, keep: 100}
distributed: {batch_norm: average}
)";

int checkpoints_after(const Outcome& outcome) {
  const size_t at = outcome.output.find("the run ends after ");
  return at == std::string::npos ? -1
                                 : std::stoi(outcome.output.substr(at + std::string("the run ends after ").size()));
}

}  // namespace

TEST_CASE("interrupt: a signal to one rank ends all of them after the same step, saved, and nothing is lost") {
  const RunFolder folder(kModel);
  const Outcome whole = folder.train("whole", 2, {});
  REQUIRE_MESSAGE(whole.exit_code == 0, whole.output);
  const Told expected = told(folder / "whole");
  struct Case {
    const char* fault;
    int steps;  // saved
  };
  // 5 steps an epoch, the fifth of one micro-step; evaluations after steps 3, 5, ..., 15.
  const Case cases[] = {{"1,preparation,usr1", 0},    {"0,step:0,term", 0},    {"1,step:7,term", 7},
                        {"1,forward:7,usr1", 7},      {"0,forward:3,term", 3}, {"1,forward:4,usr1", 5},
                        {"1,evaluation:7,usr1", 7},   {"0,save:8,term", 8},    {"1,evaluation:5,term", 5},
                        {"0,evaluation:15,usr1", 15}, {"0,step:9,usr1", 9}};
  int number = 0;
  for (const Case& c : cases) {
    const std::string fault = c.fault, name = "run" + std::to_string(number++);
    CAPTURE(fault);
    const Outcome ended = folder.train(name, 2, {}, {"LOCKSTEP_FAULT=" + fault});
    CHECK_MESSAGE(ended.exit_code == 75, ended.output);
    CHECK(ended.says((fault.ends_with("term") ? "SIGTERM on rank " : "SIGUSR1 on rank ") + fault.substr(0, 1)));
    CHECK(ended.count("is saved; --resume auto goes on") == 1);
    CHECK(checkpoints_after(ended) == c.steps);
    CHECK(fs::exists(folder / name / "checkpoints" / fmt::format("step-{:09}", c.steps)));
    const Outcome resumed = folder.train(name, 2, {"--resume", "auto"});
    REQUIRE_MESSAGE(resumed.exit_code == 0, resumed.output);
    CHECK(told(folder / name).digest == expected.digest);
    CHECK(told(folder / name).events == expected.events);
  }
}

TEST_CASE("interrupt: virtual ranks leave an abandoned step without a trace") {
  const RunFolder folder(kModel);
  const std::vector<std::string> settings{"--set", "train.virtual_ranks=4", "--set", "train.batch_size=4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), settings.begin(), settings.end());
    return more;
  };
  REQUIRE(folder.train("whole", 2, settings).exit_code == 0);
  const Outcome ended = folder.train("run", 2, settings, {"LOCKSTEP_FAULT=1,forward:7,term"});
  CHECK_MESSAGE(ended.exit_code == 75, ended.output);
  CHECK(checkpoints_after(ended) == 7);
  REQUIRE(folder.train("run", 4, with({"--resume", "auto"})).exit_code == 0);
  CHECK(told(folder / "run").digest == told(folder / "whole").digest);
  CHECK(told(folder / "run").events == told(folder / "whole").events);
}

TEST_CASE("interrupt: run.max_time ends a run that would go on for ever, again and again") {
  const RunFolder folder(kModel);
  int before = 0;
  for (int i = 0; i < 2; ++i) {
    const Outcome ended = folder.train(
        "run", 2,
        {"--set", "run.max_time=2", "--set", "train.epochs=1000000", "--set", "log.every=100000", "--resume", "auto"});
    CHECK_MESSAGE(ended.exit_code == 75, ended.output);
    CHECK(ended.says("max_time"));
    CHECK(ended.seconds < 30);
    const int after = checkpoints_after(ended);
    CHECK(after > before);
    before = after;
  }
}

TEST_CASE("interrupt: without checkpoints a run that is asked to end says that nothing is saved") {
  const RunFolder folder(kModel);
  const Outcome ended = folder.train("run", 2, {"--set", "checkpoint.every=never"}, {"LOCKSTEP_FAULT=1,step:7,term"});
  CHECK(ended.exit_code == 1);
  CHECK(ended.says("nothing is saved, as checkpoint.every is never"));
}
