// What goes wrong at the start of a run, and the supervisor, with the real program and mpirun. Ranks that go wrong in
// the middle of training are in watchdog.cpp.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

const char* const kModel = R"(
model: {layers: [{linear: 64}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 256, shape: [16], classes: 2}}
train: {epochs: 4, batch_size: 4}
optimizer: {kind: sgd, lr: 0.1}
eval: {every: never}
log: {every: 1000}
distributed: {timeout: 2}
)";

std::vector<std::string> with_fault(const std::string& fault, std::vector<std::string> command) {
  command.insert(command.begin(), {"env", "LOCKSTEP_FAULT=" + fault});
  return command;
}

std::vector<std::string> supervised(const std::vector<std::string>& options, const std::vector<std::string>& command) {
  std::vector<std::string> words{LOCKSTEP_BINARY, "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace

TEST_CASE("a rank that does not start ends the launch at its time limit") {
  const RunFolder folder(kModel);
  for (const char* action : {"sleep:60", "stop"}) {
    const Outcome outcome = run_process(
        with_fault(std::string("1,start,") + action, mpirun(3, folder.command("run", {"--start-timeout", "4"}))), 50);
    CAPTURE(outcome.output);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.seconds < 4 + 10);
    CHECK(outcome.exit_code == 1);
    CHECK((outcome.says("rank 0: waited 4 s in MPI_Init (--start-timeout) for other ranks") ||
           outcome.says("rank 2: waited 4 s in MPI_Init (--start-timeout) for other ranks")));
    CHECK_FALSE(outcome.says("rank 1: waited"));
  }
}

TEST_CASE("a rank that dies before MPI has started ends the launch") {
  const RunFolder folder(kModel);
  const Outcome outcome = run_process(with_fault("1,start,kill", mpirun(2, folder.command("run", {}))), 50);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.seconds < 12);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.says("signal 9"));
}

TEST_CASE("a killed run leaves no shared memory behind") {
  const auto names = [] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (entry.is_regular_file() && entry.path().filename().string().starts_with("lockstep-"))
        found.insert(entry.path().filename());
    return found;
  };
  const RunFolder folder(kModel);
  const auto before = names();
  const Outcome outcome = run_process(
      with_fault("0,step:3,kill", mpirun(3, folder.command("run", {"--set", "distributed.backend=shm"}))), 50);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code != 0);
  const auto after = names();
  sleep(1);  // another test's names are gone by then
  for (const std::string& name : names()) {
    CAPTURE(name);
    CHECK((before.contains(name) || !after.contains(name)));
  }
}

TEST_CASE("a rank without memory at the start ends all ranks with that") {
  const RunFolder folder(kModel);
  const Outcome outcome = run_process(with_fault("1,preparation,memory", mpirun(3, folder.command("run", {}))), 50);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.seconds < 12);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.says("rank 1: std::bad_alloc"));
}

TEST_CASE("a rank that the system gives no memory ends all ranks with its message") {
  const RunFolder folder(kModel);
  // Rank 1 may have 3 GiB of addresses; its batch alone needs 4.
  std::vector<std::string> command = mpirun(1, folder.command("run", {}));
  std::vector<std::string> small = folder.command("run", {});
  command.insert(command.end(), {":", "-np", "1", "sh", "-c", "ulimit -v 3000000; exec \"$@\"", "sh"});
  command.insert(command.end(), small.begin(), small.end());
  for (const char* word :
       {"--set", "data.train.shape=[4096]", "--set", "train.batch_size=262144", "--set", "data.prefetch=0"}) {
    command.emplace_back(word);
    command.insert(std::ranges::find(command, ":"), word);
  }
  const Outcome outcome = run_process(command, 60);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code != 0);
  CHECK((outcome.says("out of memory") || outcome.says("bad_alloc")));
}

TEST_CASE("an error on one rank in the loader or forward or while saving ends all ranks with that error") {
  const RunFolder folder(kModel);
  for (const char* place : {"loader:5", "forward:3", "save:4"}) {
    const Outcome outcome = run_process(
        with_fault(std::string("1,") + place + ",throw",
                   mpirun(3, folder.command(
                                 "run", {"--set", "checkpoint.every=4", "--set", "data.prefetch=2", "--overwrite"}))),
        50);
    CAPTURE(place);
    CAPTURE(outcome.output);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.seconds < 12);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.says("rank 1: LOCKSTEP_FAULT asks for an error here"));
  }
}

TEST_CASE("the supervisor starts a killed run again and it ends with the bits of an unbroken one") {
  const RunFolder folder(kModel);
  const std::vector<std::string> run =
      folder.command("run", {"--set", "checkpoint.every=8 steps", "--set", "train.max_steps=24"});
  const Outcome unbroken = run_process(mpirun(2, run), 60);
  CAPTURE(unbroken.output);
  REQUIRE(unbroken.exit_code == 0);
  const std::string digest = told(folder / "run").digest;
  REQUIRE(digest.size() == 64);
  fs::remove_all(folder / "run");
  // The first start only: rank 1 kills itself before step 20.
  std::vector<std::string> command{"sh", "-c", "mkdir \"$0\" && export LOCKSTEP_FAULT=1,step:20,kill; exec \"$@\"",
                                   (folder / "started").string()};
  for (const std::string& word : mpirun(2, run)) command.push_back(word);
  const Outcome outcome = run_process(supervised({"--max-restarts", "2", "--delay", "0.1"}, command), 90);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.says("restart 1 of 2 in 0.1 s, because of exit code 137 (128 + SIGKILL)"));
  CHECK(outcome.says("after 16 steps"));
  CHECK(told(folder / "run").digest == digest);
}

TEST_CASE("the supervisor does not repeat what is wrong and passes its exit code on") {
  const RunFolder folder(kModel);
  const Outcome wrong = run_process(
      supervised({"--max-restarts", "3"}, mpirun(2, folder.command("run", {"--set", "optimizer.lr=fast"}))), 30);
  CAPTURE(wrong.output);
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.count("optimizer.lr") == 1);
  const Outcome well = run_process(supervised({"--max-restarts", "3"}, mpirun(2, folder.command("run", {}))), 60);
  CAPTURE(well.output);
  CHECK(well.exit_code == 0);
  CHECK_FALSE(well.says("restart "));
  const Outcome refused =
      run_process(supervised({"--max-restarts", "3"}, mpirun(2, folder.command("run", {"--resume", "runs/a"}))), 30);
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("use --resume auto"));
}

TEST_CASE("mpirun passes SIGUSR1 on and the run ends saved with an exit code of its own") {
  const RunFolder folder(kModel);
  const std::vector<std::string> run =
      folder.command("run", {"--set", "checkpoint.every=1000000 epochs", "--set", "train.epochs=1000000"});
  // $0: where the output goes. The first step is told at once, the signals are caught by then.
  std::vector<std::string> command{"sh", "-c",
                                   "\"$@\" > \"$0\" 2>&1 & until grep -q 'step      0' \"$0\"; do sleep 0.1; done; "
                                   "kill -USR1 $!; wait $!; code=$?; cat \"$0\"; exit $code",
                                   (folder / "started").string()};
  for (const std::string& word : mpirun(3, run)) command.push_back(word);
  const Outcome outcome = run_process(command, 60);
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 75);
  CHECK(outcome.says("SIGUSR1 on rank "));
  CHECK(outcome.count(" and is saved; --resume auto goes on") == 1);
  const Outcome resumed = run_process(
      mpirun(3, folder.command("run", {"--resume", "auto", "--dry-run", "--set", "checkpoint.every=1000000 epochs",
                                       "--set", "train.epochs=1000000"})),
      60);
  CAPTURE(resumed.output);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.says("resuming "));
}
