// Checkpoints and resuming with the real program under mpirun: killed runs, other numbers of ranks, finished runs, and
// what is refused. That every kind of state comes back is shown in tests/mpi/resume.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kModel = R"(
model: {layers: [{linear: 24}, relu, {dropout: 0.3}, {linear: 3}]}
data:
  train: {kind: synthetic, name: random, samples: 203, shape: [5], classes: 3, seed: 5}
  val: {kind: synthetic, name: random, samples: 50, shape: [5], classes: 3, seed: 6}
train: {epochs: 3}
optimizer: {kind: adamw, lr: 0.01}
log: {every: 1, indices: true, per_rank: true}
checkpoint: {every: 4, keep: 100}
)";

std::vector<std::string> with(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kBatch{"--set", "train.batch_size=8"};
const std::vector<std::string> kResume{"--resume", "auto"};

}  // namespace

TEST_CASE("resume: a killed run goes on to the end of the unbroken one and its log has no seam") {
  const RunFolder folder(kModel);
  const Outcome whole = folder.train("whole", 2, kBatch);
  REQUIRE_MESSAGE(whole.exit_code == 0, whole.output);
  const Outcome killed = folder.train("killed", 2, kBatch, {"LOCKSTEP_FAULT=1,step:19,kill"});
  CHECK(killed.exit_code != 0);
  const Outcome again = folder.train("killed", 2, with(kBatch, kResume), {"LOCKSTEP_FAULT=0,step:30,throw"});
  CHECK(again.exit_code != 0);
  CHECK(again.says("resuming"));
  const Outcome resumed = folder.train("killed", 2, with(kBatch, kResume));
  REQUIRE_MESSAGE(resumed.exit_code == 0, resumed.output);
  const Told expected = told(folder / "whole"), found = told(folder / "killed");
  CHECK(!expected.digest.empty());
  CHECK(found.digest == expected.digest);
  CHECK(found.events == expected.events);
  CHECK((checkpoint_bytes(folder / "killed") == checkpoint_bytes(folder / "whole")));
}

TEST_CASE("resume: with virtual ranks checkpoints are the same bytes on any number of ranks and any may go on") {
  const RunFolder folder(kModel);
  const std::vector<std::string> virtual_ranks{"--set", "train.batch_size=2", "--set", "train.virtual_ranks=8"};
  std::map<std::string, std::string> expected;
  for (const auto& [name, ranks, backend] :
       {std::tuple{"v1", 1, "auto"}, {"v2", 2, "shm"}, {"v4", 4, "mpi"}, {"v8", 8, "shm"}}) {
    const Outcome run = folder.train(name, ranks,
                                     with(virtual_ranks, {"--set", fmt::format("distributed.backend={}", backend),
                                                          "--set", "distributed.world_size=null"}));
    REQUIRE_MESSAGE(run.exit_code == 0, run.output);
    const auto files = checkpoint_bytes(folder / name);
    CHECK(files.size() > 20);
    if (expected.empty()) expected = files;
    for (const auto& [path, text] : files) CHECK_MESSAGE((text == expected[path]), path);
    CHECK(files.size() == expected.size());
  }
  const Told whole = told(folder / "v1");
  for (const auto& [first, second] : {std::pair{8, 1}, {1, 4}, {2, 8}}) {
    const std::string name = fmt::format("from{}to{}", first, second);
    const Outcome killed = folder.train(name, first, virtual_ranks, {"LOCKSTEP_FAULT=0,step:21,kill"});
    CHECK(killed.exit_code != 0);
    const Outcome resumed = folder.train(name, second, with(virtual_ranks, kResume));
    REQUIRE_MESSAGE(resumed.exit_code == 0, resumed.output);
    CHECK(told(folder / name).digest == whole.digest);
    CHECK(told(folder / name).events == whole.events);
  }
}

TEST_CASE("resume: other ranks with the same global batch take the same samples") {
  const RunFolder folder(kModel);
  REQUIRE(folder.train("whole", 2, with(kBatch, {"--set", "train.accumulate=2"})).exit_code == 0);
  const Told whole = told(folder / "whole");
  const auto batch = [](int size, int accumulate) {
    return std::vector<std::string>{"--set", fmt::format("train.batch_size={}", size), "--set",
                                    fmt::format("train.accumulate={}", accumulate)};
  };
  REQUIRE(folder.train("other", 2, with(batch(8, 2), {"--set", "train.max_steps=9"})).exit_code == 0);
  const Outcome resumed = folder.train("other", 4, with(batch(8, 1), kResume));
  REQUIRE_MESSAGE(resumed.exit_code == 0, resumed.output);
  CHECK(resumed.says("train.max_steps: 9 -> null"));
  CHECK(resumed.says("train.accumulate: 2 -> 1"));
  const Told other = told(folder / "other");
  CHECK(other.rows == whole.rows);
  CHECK(other.rows.size() == 21);
}

TEST_CASE("resume: another global batch is refused unless allowed and then no sample of the epoch is lost") {
  const RunFolder folder(kModel);
  REQUIRE(folder.train("run", 2, with(kBatch, {"--set", "train.max_steps=4"})).exit_code == 0);
  const Outcome refused = folder.train("run", 3, with(kBatch, kResume));
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("the checkpoint is of a run with a global batch of 16, this one has 24"));
  CHECK(refused.says("--allow-batch-change"));
  const Outcome allowed =
      folder.train("run", 3, with(with(kBatch, kResume), {"--allow-batch-change", "--set", "train.epochs=1"}));
  REQUIRE_MESSAGE(allowed.exit_code == 0, allowed.output);
  const Told run = told(folder / "run");
  std::set<int64_t> rows;
  size_t count = 0;
  for (const auto& [step, of_step] : run.rows) {
    rows.insert(of_step.begin(), of_step.end());
    count += of_step.size();
  }
  CHECK(rows.size() == 203);
  CHECK(count == 203);
  CHECK(run.rows.size() == 4 + 6);  // 139 samples are left
}

TEST_CASE("resume: a finished run says so and a longer one goes on") {
  const RunFolder folder(kModel);
  REQUIRE(folder.train("whole", 2, kBatch).exit_code == 0);
  REQUIRE(folder.train("run", 2, with(kBatch, {"--set", "train.epochs=2"})).exit_code == 0);
  const std::string log = bytes_of(folder / "run" / "metrics.jsonl");
  const Outcome finished = folder.train("run", 2, with(with(kBatch, kResume), {"--set", "train.epochs=2"}));
  CHECK(finished.exit_code == 0);
  CHECK(finished.says("the run has ended after 26 steps, nothing is left to train"));
  CHECK(bytes_of(folder / "run" / "metrics.jsonl") == log);
  REQUIRE(folder.train("run", 2, with(kBatch, kResume)).exit_code == 0);
  CHECK(told(folder / "run").digest == told(folder / "whole").digest);
}

TEST_CASE("resume: a new run does not mix with an old one's checkpoints") {
  const RunFolder folder(kModel);
  REQUIRE(folder.train("run", 2, with(kBatch, {"--set", "train.max_steps=9"})).exit_code == 0);
  const Outcome refused = folder.train("run", 2, kBatch);
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("an earlier run has left checkpoints here, the newest after 9 steps"));
  const Outcome anew = folder.train("run", 2, with(kBatch, {"--overwrite", "--set", "train.max_steps=5"}));
  CHECK_MESSAGE(anew.exit_code == 0, anew.output);
  CHECK(!fs::exists(folder / "run" / "checkpoints" / "step-000000009"));
  CHECK(fs::exists(folder / "run" / "checkpoints" / "step-000000005"));

  // Going back to an earlier step of the same run.
  const std::vector<std::string> back{"--resume", (folder / "run" / "checkpoints" / "step-000000004").string()};
  CHECK(folder.train("run", 2, with(kBatch, back)).says("remove those after step 4 with --overwrite"));
  CHECK(fs::exists(folder / "run" / "checkpoints" / "step-000000005"));
  const Outcome gone_back =
      folder.train("run", 2, with(with(kBatch, back), {"--overwrite", "--set", "train.max_steps=7"}));
  CHECK_MESSAGE(gone_back.exit_code == 0, gone_back.output);
  CHECK(!fs::exists(folder / "run" / "checkpoints" / "step-000000005"));
  CHECK(fs::exists(folder / "run" / "checkpoints" / "step-000000004"));
  CHECK(fs::exists(folder / "run" / "checkpoints" / "step-000000007"));
}

TEST_CASE("resume: a checkpoint of another model or optimizer is refused with the reason") {
  const RunFolder folder(kModel);
  REQUIRE(folder.train("run", 2, with(kBatch, {"--set", "train.max_steps=5"})).exit_code == 0);
  const Outcome model = folder.train(
      "run", 2,
      with(with(kBatch, kResume), {"--set", "model.layers=[{linear: 25}, relu, {dropout: 0.3}, {linear: 3}]"}));
  CHECK(model.exit_code == 2);
  CHECK(model.says("tensor '0.weight': expected the shape"));
  const Outcome optimizer = folder.train("run", 2, with(with(kBatch, kResume), {"--set", "optimizer.kind=sgd"}));
  CHECK(optimizer.exit_code == 2);
  CHECK(optimizer.says("the checkpoint is of a run with optimizer adamw, this one has sgd"));
  const Outcome missing = folder.train("other", 2, with(kBatch, {"--resume", (folder / "nowhere").string()}));
  CHECK(missing.exit_code == 2);
  CHECK(missing.says("nowhere"));
}

TEST_CASE("checkpoints that do not fit on the disk end the run or are done without as the config says") {
  const RunFolder folder(kModel);
  // No file may be longer than 8 MiB: model.safetensors is, the memory that MPI shares is not.
  const auto limited = [&](const std::string& name, const std::vector<std::string>& more) {
    const std::vector<std::string> settings{"--set", "train.batch_size=8",
                                            "--set", "train.max_steps=9",
                                            "--set", "model.layers=[{linear: 250000}, relu, {linear: 3}]",
                                            "--set", "log.indices=false",
                                            "--set", "distributed.backend=mpi"};
    std::vector<std::string> command{"sh", "-c", "ulimit -f 16384; exec \"$@\"", "sh"};
    for (const std::string& word : folder.command(name, with(settings, more))) command.push_back(word);
    return run_process(mpirun(2, command), 60);
  };
  const Outcome stopped = limited("stop", {});
  CHECK(stopped.exit_code == 1);
  CHECK(stopped.count("lockstep: ") == 1);
  CHECK(stopped.says("model.safetensors"));
  CHECK(stopped.says("File too large"));
  const Outcome warned = limited("warn", {"--set", "checkpoint.on_error=warn"});
  CHECK_MESSAGE(warned.exit_code == 0, warned.output);
  CHECK(warned.count("training goes on without it") == 3);  // steps 4, 8 and 9
  CHECK(told(folder / "warn").digest.size() == 64);
  for (const char* name : {"stop", "warn"}) CHECK(checkpoint_bytes(folder / name).empty());
}
