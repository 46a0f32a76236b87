// lockstep train --trace, under mpirun: what is in the file, that the run is the same, and that there is no half file.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "support/run_folder.h"
#include "support/trace_file.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

// Six parameters, a bucket each. 16 steps an epoch on one rank, 8 on two, 6 on three. Batches come from a thread.
constexpr const char* kRun = R"(
model:
  layers: [{linear: 300, name: hidden}, relu, {linear: 200}, tanh, {linear: 3, name: head}]
data:
  train: {kind: synthetic, name: teacher, samples: 256, shape: [64], classes: 3}
  val: {kind: synthetic, name: teacher, samples: 64, shape: [64], classes: 3, seed: 5}
  prefetch: 2
train: {epochs: 4, batch_size: 16}
optimizer: {kind: adamw, lr: 0.01}
eval: {every: 7 steps}
log: {every: 3}
checkpoint: {every: 5}
device: {threads: 1}
distributed: {bucket_mb: 0, first_bucket_mb: 0}
)";
const std::vector<std::string> kLayers{"hidden", "2 linear", "3 tanh",
                                       "head"};  // the relu is part of what is before it
constexpr size_t kBuckets = 6;

struct Traced {
  RunFolder folder{kRun};
  Outcome outcome;
  Traced(int ranks, const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
         int expected = 0) {
    outcome = folder.train("run", ranks, arguments, environment);
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == expected);
  }
  fs::path path() const { return folder / "run/trace.json"; }
};

std::vector<std::string> names_of(const std::vector<TracedEvent>& events) {
  std::vector<std::string> names;
  for (const TracedEvent& event : events) names.push_back(event.name);
  return names;
}

// The events of a row that lie in one of these.
size_t within(const std::vector<TracedEvent>& events, const std::vector<TracedEvent>& outer) {
  return static_cast<size_t>(std::ranges::count_if(events, [&](const TracedEvent& event) {
    return std::ranges::any_of(outer, [&](const TracedEvent& other) { return other.holds(event); });
  }));
}

}  // namespace

TEST_CASE("trace: a row per rank with every layer and bucket of every step that was asked for") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const Traced run(ranks, {"--trace"});
    CHECK(run.outcome.count("trace.json: steps 10 to 19") == 1);
    CHECK(run.outcome.says("clocks one for all ranks"));
    const TraceFile trace(run.path());
    CHECK(trace.about()["steps"] == "10 to 19");
    CHECK(trace.tangle() == "");
    REQUIRE(trace.ranks().size() == static_cast<size_t>(ranks));
    for (size_t rank = 0; rank < trace.ranks().size(); ++rank) {
      CAPTURE(rank);
      CHECK(trace.ranks()[rank].starts_with("rank " + std::to_string(rank) + " on "));
      const auto steps = trace.events(rank, "compute", "step");
      REQUIRE(steps.size() == 10);
      for (size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].name == "step " + std::to_string(10 + i));
        for (const std::string& layer : kLayers) {
          CAPTURE(layer);
          CHECK(trace.count(rank, "compute", "forward", layer, steps[i]) == 1);
          CHECK(trace.count(rank, "compute", "backward", layer, steps[i]) == 1);
        }
        for (const char* phase : {"data", "forward", "backward", "communication", "optimizer"})
          CHECK(trace.count(rank, "compute", "phase", phase, steps[i]) == 1);
      }
      // Nothing else is a layer, and layers lie in the phase that they are of.
      const auto forward = trace.events(rank, "compute", "forward"),
                 backward = trace.events(rank, "compute", "backward");
      CHECK(forward.size() == 10 * kLayers.size());
      CHECK(backward.size() == 10 * kLayers.size());
      CHECK(within(forward, steps) == forward.size());

      const auto sums = trace.events(rank, "communication", "gradients");
      REQUIRE(sums.size() == (ranks > 1 ? 10 * kBuckets : 0));
      for (size_t i = 0; i < sums.size(); ++i) {
        CHECK(sums[i].name == "all_reduce bucket " + std::to_string(i % kBuckets));
        CHECK(steps[i / kBuckets].holds(sums[i]));
      }
      if (ranks > 1) CHECK(sums[0].values["bytes"] == 3 * 4);         // the last layer's bias
      if (ranks > 1) CHECK(sums[5].values["bytes"] == 300 * 64 * 4);  // the first one's weight
      CHECK(trace.events(rank, "compute", "wait").size() == (ranks > 1 ? 10 : 0));
      CHECK(!trace.events(rank, "loader", "batch").empty());
      const auto phases = names_of(trace.events(rank, "compute", "phase"));
      for (const char* between : {"evaluation", "checkpoint", "log"}) CHECK(std::ranges::count(phases, between) >= 1);
    }
  }
}

TEST_CASE("trace: buckets travel while backward goes on, or after it without overlap") {
  for (const bool overlap : {true, false}) {
    CAPTURE(overlap);
    const Traced run(2, {"--trace", "--set", overlap ? "distributed.overlap=true" : "distributed.overlap=false"});
    const TraceFile trace(run.path());
    for (size_t rank = 0; rank < 2; ++rank) {
      const auto sums = trace.events(rank, "communication", "gradients");
      REQUIRE(sums.size() == 10 * kBuckets);
      size_t beside = 0;
      for (const TracedEvent& phase : trace.events(rank, "compute", "phase")) {
        if (phase.name != "backward") continue;
        beside += static_cast<size_t>(std::ranges::count_if(
            sums, [&](const auto& sum) { return sum.begin < phase.end && sum.end > phase.begin; }));
      }
      CHECK((beside >= 10) == overlap);  // the head's bias in each step, at the least
      if (!overlap) CHECK(beside == 0);
    }
  }
}

TEST_CASE("trace: with other steps named the same run comes to the same bits") {
  const std::vector<std::string> log{"--set", "log.every=1"};
  const Traced run(2, {"--set", "log.every=1", "--trace=0-2"});
  const Traced plain(2, log);
  CHECK(!fs::exists(plain.path()));
  const Told traced = told(run.folder / "run"), expected = told(plain.folder / "run");
  CHECK(traced.events == expected.events);
  CHECK(traced.digest == expected.digest);
  CHECK(names_of(TraceFile(run.path()).events(1, "compute", "step")) ==
        std::vector<std::string>{"step 0", "step 1", "step 2"});
  // By messages, in several micro-steps, with one bucket for all.
  const Traced other(3, {"--set", "log.trace=[4, 4]", "--set", "distributed.backend=mpi", "--set", "train.accumulate=2",
                         "--set", "distributed.bucket_mb=25", "--set", "distributed.first_bucket_mb=25"});
  const TraceFile trace(other.path());
  CHECK(trace.tangle() == "");
  const auto steps = trace.events(2, "compute", "step");
  REQUIRE(steps.size() == 1);
  CHECK(trace.count(2, "compute", "backward", "head", steps[0]) == 2);
  CHECK(trace.events(2, "communication", "gradients").size() == 1);
}

// Each rank's part in a sum ends after all have launched it, in any one time: else clocks were not brought together.
TEST_CASE("trace: ranks whose clocks are a day apart are in one time") {
  const std::vector<std::string> elsewhen{"unshare", "--time", "--monotonic=86400", "--fork"};
  std::vector<std::string> words = elsewhen;
  words.emplace_back("true");
  if (run_process(words, 10).exit_code != 0) {
    MESSAGE("SKIPPED: unshare makes no time namespace here");
    return;
  }
  const RunFolder folder(kRun);
  const std::vector<std::string> program = folder.command("run", {"--trace"});
  words = mpirun(1, program);
  words.insert(words.end(), {":", "-np", "1"});
  words.insert(words.end(), elsewhen.begin(), elsewhen.end());
  words.insert(words.end(), program.begin(), program.end());
  const Outcome outcome = run_process(words, 100);
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
  const TraceFile trace(folder / "run/trace.json");
  const std::string clocks = trace.about()["clocks"];
  REQUIRE(clocks.starts_with("within "));
  const double error = std::stod(clocks.substr(7));
  CHECK(error < 100'000);
  const auto mine = trace.events(0, "communication", "gradients"),
             theirs = trace.events(1, "communication", "gradients");
  REQUIRE(mine.size() == 10 * kBuckets);
  REQUIRE(theirs.size() == mine.size());
  const auto launched = [](const TracedEvent& sum) { return sum.begin - sum.values["queued_us"].get<double>(); };
  for (size_t i = 0; i < mine.size(); ++i) {
    CHECK(launched(mine[i]) <= theirs[i].end + error);
    CHECK(launched(theirs[i]) <= mine[i].end + error);
  }
}

TEST_CASE("trace: a run that is asked to end leaves the steps it made and a killed one no file") {
  std::vector<std::string> arguments{"--set", "train.epochs=400", "--set",          "checkpoint.every=1000",
                                     "--set", "eval.every=never", "--trace=10-3000"};
  const Traced asked(2, arguments, {"LOCKSTEP_FAULT=1,step:12,term"}, 75);
  const TraceFile trace(asked.path());
  CHECK(trace.tangle() == "");
  CHECK(trace.events(0, "compute", "step").size() >= 2);
  CHECK(trace.events(0, "compute", "step").size() < 2991);
  arguments.back() = "--trace=3100-3101";
  arguments.insert(arguments.end(), {"--resume", "auto"});
  const Outcome resumed = asked.folder.train("run", 2, arguments);
  CHECK_MESSAGE(resumed.exit_code == 0, resumed.output);
  CHECK(names_of(TraceFile(asked.path()).events(1, "compute", "step")) ==
        std::vector<std::string>{"step 3100", "step 3101"});

  const RunFolder folder(kRun);
  const std::vector<std::string> unsaved{"--set", "checkpoint.every=never", "--trace"};
  REQUIRE(folder.train("run", 2, unsaved).exit_code == 0);
  CHECK(fs::exists(folder / "run/trace.json"));
  const Outcome killed = folder.train("run", 2, unsaved, {"LOCKSTEP_FAULT=1,step:15,kill"});
  CHECK(killed.exit_code != 0);
  CHECK_MESSAGE(killed.says("step     12"), killed.output);
  CHECK(!fs::exists(folder / "run/trace.json"));  // that of the run before would be mistaken for this one's
}

TEST_CASE("trace: a file that cannot be written is a warning and one that is full says so") {
  const RunFolder folder(kRun);
  fs::create_directories(folder / "run/trace.json/occupied");
  const Outcome blocked = folder.train("run", 2, {"--trace"});
  CHECK_MESSAGE(blocked.exit_code == 0, blocked.output);
  CHECK(blocked.count("log.trace: ") == 1);
  CHECK(blocked.says("training goes on without it"));
  CHECK(!fs::exists(folder / "run/trace.json.tmp"));

  const Traced full(2, {"--trace=0-100000", "--set", "train.epochs=500", "--set", "log.every=1000", "--set",
                        "eval.every=never", "--set", "checkpoint.every=never"});
  CHECK(full.outcome.says("log.trace: no room for "));
  const TraceFile trace(full.path());
  CHECK(trace.events(1, "compute").size() == 65536);
}

TEST_CASE("trace: steps that are none and runs that end before them are told") {
  const RunFolder folder(kRun);
  for (const char* wrong : {"--trace=x", "--trace=3-", "--trace=3-4-5", "--trace=5-3"}) {
    CAPTURE(wrong);
    const Outcome outcome = folder.train("run", 1, {wrong});
    CHECK_MESSAGE(outcome.exit_code == 2, outcome.output);
  }
  const Outcome late = folder.train("run", 2, {"--trace=32-40"});
  CHECK(late.exit_code == 2);
  CHECK_MESSAGE(late.says("the run has 32"), late.output);
}
