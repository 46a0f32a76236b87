// A rank that stalls, stops or dies in the middle of training: the others end in time, with another exit code than 0
// and the cause in the output. Real program, real mpirun; the fault is core/fault.h's.
#include <doctest/doctest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

// Without stop signals the ranks agree on nothing at the start of a step, so that a late rank is always awaited in the
// same collective.
const char* const kModel = R"(
run: {stop_signals: []}
model: {layers: [{linear: 64}, relu, {linear: 64}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 256, shape: [16], classes: 2}}
train: {epochs: 4, batch_size: 4}
optimizer: {kind: sgd, lr: 0.1}
eval: {every: never}
log: {every: 1000}
distributed: {timeout: 2, bucket_mb: 0, first_bucket_mb: 0}
)";

struct Environment {  // of the programs that are started meanwhile
  explicit Environment(const std::string& fault) { setenv("LOCKSTEP_FAULT", fault.c_str(), 1); }
  ~Environment() { unsetenv("LOCKSTEP_FAULT"); }
};

TrainingRun run_with(const std::string& fault, const std::string& backend, bool overlap, int ranks = 2) {
  const Environment environment(fault);
  return train_text(
      kModel, ranks,
      {"distributed.backend=" + backend, "distributed.overlap=" + std::string(overlap ? "true" : "false")}, 50);
}

void for_all(const std::function<void(const std::string& backend, bool overlap)>& check) {
  for (const char* backend : {"shm", "mpi"})
    for (const bool overlap : {true, false}) check(backend, overlap);
}

void check_stall(const std::string& fault, int ranks) {
  for_all([&](const std::string& backend, bool overlap) {
    const TrainingRun run = run_with(fault, backend, overlap, ranks);
    CAPTURE(backend);
    CAPTURE(overlap);
    CAPTURE(run.outcome.output);
    CHECK_FALSE(run.outcome.timed_out);
    CHECK(run.outcome.seconds < 30);  // the limit of 2 s, a roll call of 1 s, and a very busy machine
    CHECK(run.outcome.exit_code != 0);
    CHECK((run.outcome.says("rank 0: ") || run.outcome.says("rank 2: ")));  // whoever is first ends the other
    CHECK(run.outcome.says("waited 2 s in all_reduce_sum #"));
    CHECK(run.outcome.says("(step 3, bucket 0 from 4.bias) for rank 1\n"));
  });
}

}  // namespace

TEST_CASE("a rank that sleeps in step 3 is named with step and collective and bucket") {
  check_stall("1,step:3,sleep:60", 2);
}

TEST_CASE("a rank stopped by SIGSTOP is named by the others") { check_stall("1,step:3,stop", 3); }

TEST_CASE("a rank killed by SIGKILL ends the others at once") {
  for_all([](const std::string& backend, bool overlap) {
    const TrainingRun run = run_with("1,step:3,kill", backend, overlap, 3);
    CAPTURE(run.outcome.output);
    CHECK_FALSE(run.outcome.timed_out);
    CHECK(run.outcome.seconds < 20);
    CHECK(run.outcome.exit_code != 0);
    CHECK(run.outcome.says("rank 1"));  // mpirun's words
    CHECK(run.outcome.says("signal 9"));
  });
}

TEST_CASE("an error on one rank in step 3 ends all ranks with that error") {
  for_all([](const std::string& backend, bool overlap) {
    const TrainingRun run = run_with("1,step:3,throw", backend, overlap, 3);
    CAPTURE(run.outcome.output);
    CHECK_FALSE(run.outcome.timed_out);
    CHECK(run.outcome.seconds < 20);
    CHECK(run.outcome.exit_code != 0);
    CHECK(run.outcome.says("rank 1: LOCKSTEP_FAULT asks for an error here"));
  });
}

TEST_CASE("preparation may take longer than a collective and ends at its own limit") {
  for (const char* backend : {"shm", "mpi"}) {
    const TrainingRun well = run_with("0,preparation,sleep:5", backend, true);
    CAPTURE(well.outcome.output);
    CHECK(well.outcome.exit_code == 0);
    CHECK(well.outcome.seconds >= 5);
    const Environment environment("0,preparation,sleep:60");
    const TrainingRun late =
        train_text(kModel, 2, {std::string("distributed.backend=") + backend, "distributed.prepare_timeout=2"}, 50);
    CAPTURE(late.outcome.output);
    CHECK(late.outcome.exit_code != 0);
    CHECK(late.outcome.seconds < 25);
    CHECK(late.outcome.says("waited 2 s in all_gather #"));
    CHECK(late.outcome.says("(the preparation) for rank 0\n"));
  }
}

TEST_CASE("ranks started with different configs are told the first difference") {
  const auto file =
      std::filesystem::temp_directory_path() / ("lockstep-watchdog-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << kModel;
  // The second key also decides which memory is allocated together.
  const std::pair<const char*, const char*> differences[] = {
      {"optimizer.lr=0.2", "'  lr: 0.1  #"}, {"distributed.sharded_update=on", "'  sharded_update: auto  #"}};
  for (const auto& [key, line] : differences) {
    std::vector<std::string> command = mpirun(1, {LOCKSTEP_BINARY, "train", file.string(), "--dry-run"});
    for (const std::string& word : mpirun(1, {LOCKSTEP_BINARY, "train", file.string(), "--dry-run", "--set", key})) {
      if (word == LOCKSTEP_MPIEXEC) {
        command.emplace_back(":");
      } else {
        command.push_back(word);
      }
    }
    const Outcome outcome = run_process(command, 30);
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.count(std::string("ranks 0 and 1 differ in the config: ") + line) == 1);
    CHECK_FALSE(outcome.says("MPI_ABORT"));
  }
  std::filesystem::remove(file);
}
