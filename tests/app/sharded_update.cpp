// distributed.sharded_update with the real program and mpirun: ranks that stall or die in the midst of it, what a trace
// shows of it, and too little shared memory for it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/run_folder.h"
#include "support/trace_file.h"

using namespace lockstep::test;

namespace {

// 2.5 MiB of gradients. Without stop signals ranks agree on nothing else at the start of a step.
constexpr const char* kRun = R"(
run: {stop_signals: []}
model: {layers: [{linear: 10000}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 64, shape: [64], classes: 2}}
train: {epochs: 4, batch_size: 4}
optimizer: {kind: adam, lr: 0.01}
log: {every: 3}
device: {threads: 1}
distributed: {timeout: 2}
)";

Outcome in_small_memory(const RunFolder& folder, const std::string& size, std::vector<std::string> arguments) {
  std::vector<std::string> words{
      "unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=" + size + " tmpfs /dev/shm && exec \"$@\"", "--"};
  const std::vector<std::string> command = mpirun(2, folder.command("run", arguments));
  words.insert(words.end(), command.begin(), command.end());
  return run_process(words, 100);
}

}  // namespace

TEST_CASE("sharded: a rank that sleeps or dies is named with step and collective") {
  const RunFolder folder(kRun);
  const Outcome asleep = folder.train("run", 2, {}, {"LOCKSTEP_FAULT=1,step:3,sleep:60"}, 50);
  CAPTURE(asleep.output);
  CHECK_FALSE(asleep.timed_out);
  CHECK(asleep.seconds < 30);
  CHECK(asleep.exit_code != 0);
  CHECK(asleep.says("waited 2 s in sharded_sum #"));
  CHECK(asleep.says("(step 3) for rank 1\n"));

  for (const char* fault : {"LOCKSTEP_FAULT=1,step:3,kill", "LOCKSTEP_FAULT=1,forward:3,throw"}) {
    const Outcome dead = folder.train("run", 3, {}, {fault}, 50);
    CAPTURE(dead.output);
    CHECK_FALSE(dead.timed_out);
    CHECK(dead.seconds < 20);
    CHECK(dead.exit_code != 0);
    CHECK(dead.says("rank 1"));
  }
}

TEST_CASE("sharded: a trace shows the shared update and its waits and no sums of buckets") {
  const RunFolder folder(kRun);
  const Outcome outcome = folder.train("run", 2, {"--trace=10-19"});
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
  const TraceFile trace(folder / "run/trace.json");
  CHECK(trace.tangle() == "");
  for (size_t rank = 0; rank < 2; ++rank) {
    const auto steps = trace.events(rank, "compute", "step");
    REQUIRE(steps.size() == 10);
    CHECK(trace.events(rank, "communication", "gradients").empty());
    for (const TracedEvent& step : steps) {
      CHECK(trace.count(rank, "communication", "collective", "sharded_sum", step) == 1);
      CHECK(trace.count(rank, "compute", "wait", "wait for gradients", step) == 1);
      CHECK(trace.count(rank, "compute", "wait", "wait for parameters", step) == 1);
      CHECK(trace.count(rank, "compute", "phase", "optimizer", step) >= 1);
    }
  }
  const auto shared = trace.events(0, "communication", "collective");
  REQUIRE(!shared.empty());
  CHECK(shared.front().values["bytes"] == (10'000 * 64 + 10'000 + 2 * 10'000 + 16) * 4);  // the last bias is a line
}

TEST_CASE("sharded: what shared memory does not hold is done without, to the same bits") {
  const RunFolder folder(kRun, std::filesystem::temp_directory_path());  // /dev/shm is made small
  if (run_process({"unshare", "-m", "true"}, 20).exit_code != 0) {
    MESSAGE("SKIPPED: unshare makes no mounts here");
    return;
  }
  const Outcome whole = folder.train("whole", 2, {});
  REQUIRE_MESSAGE(whole.exit_code == 0, whole.output);
  // Ranks' gradients, 5.1 MiB, fit beside what the communicator needs itself, parameters do not.
  for (const char* backend : {"auto", "shm"}) {
    CAPTURE(backend);
    const std::string key = std::string("distributed.backend=") + backend;
    const Outcome small = in_small_memory(folder, "10m", {"--set", key});
    CAPTURE(small.output);
    CHECK(small.exit_code == 0);
    CHECK(small.says("shared memory: "));
    CHECK(told(folder / "run").digest == told(folder / "whole").digest);
  }
  for (const char* backend : {"auto", "shm"}) {
    const std::string key = std::string("distributed.backend=") + backend;
    const Outcome wanted = in_small_memory(folder, "10m", {"--set", key, "--set", "distributed.sharded_update=on"});
    CAPTURE(wanted.output);
    CHECK(wanted.exit_code == 2);
    CHECK(wanted.says("bytes needed, /dev/shm has"));
  }
}
