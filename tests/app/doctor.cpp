// lockstep doctor as people start it: alone, under mpirun, in a launch that went wrong.
#include <doctest/doctest.h>

#include "support/process.h"

using namespace lockstep::test;

namespace {

Outcome doctor(int ranks, std::vector<std::string> options, const std::vector<std::string>& variables = {}) {
  std::vector<std::string> command = {"env"};
  command.insert(command.end(), variables.begin(), variables.end());
  command.insert(command.end(), {LOCKSTEP_BINARY, "doctor"});
  command.insert(command.end(), options.begin(), options.end());
  return run_process(ranks == 0 ? command : mpirun(ranks, command), 60);
}

}  // namespace

TEST_CASE("the doctor examines a process that was started alone") {
  const Outcome outcome = doctor(0, {});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  for (const char* text : {"1 rank(s) on 1 node(s)", "MPI_THREAD_MULTIPLE", "none: started directly", "oneDNN",
                           "core(s) allowed", "/dev/shm", "Slurm", "training would start: ", "communicator serial"}) {
    CAPTURE(text);
    CHECK(outcome.count(text) == 1);
  }
}

TEST_CASE("the doctor tells once about all ranks of mpirun") {
  const Outcome outcome = doctor(2, {});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.count("2 rank(s) on 1 node(s)") == 1);
  CHECK(outcome.says("Open MPI's mpirun"));
  CHECK(outcome.count("training would start") == 1);
  CHECK(outcome.says("communicator shm"));
}

TEST_CASE("the doctor's exit code says that a config would not start") {
  const std::string config = LOCKSTEP_SOURCE_DIR "/configs/articles/001_first_principles.yaml";
  CHECK(doctor(2, {config}).exit_code == 0);
  const Outcome wrong_size = doctor(2, {config, "--set", "distributed.world_size=4"});
  CAPTURE(wrong_size.output);
  CHECK(wrong_size.exit_code == 2);
  CHECK(wrong_size.count("STOPS: ") == 1);
  CHECK(wrong_size.says("world_size 4"));
  const Outcome no_file = doctor(2, {"nowhere.yaml"});
  CAPTURE(no_file.output);
  CHECK(no_file.exit_code == 2);
  CHECK(no_file.says("nowhere.yaml"));
}

TEST_CASE("srun without PMIx is named by one process with its cure") {
  const auto as_task = [](const char* rank) {
    return doctor(0, {}, {"SLURM_JOB_ID=7", "SLURM_STEP_NUM_TASKS=4", std::string("SLURM_PROCID=") + rank});
  };
  const Outcome first = as_task("0"), second = as_task("2");
  CAPTURE(first.output);
  CHECK(first.exit_code != 0);
  CHECK(first.says("start with srun --mpi=pmix"));
  CHECK(second.exit_code != 0);
  CHECK_FALSE(second.says("start with srun --mpi=pmix"));
}

TEST_CASE("a GPU that is not there stops a run that wants it") {
  const Outcome outcome = doctor(2, {"--set", "device.kind=cuda"});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.says("STOPS: device.kind cuda: "));
  CHECK(outcome.says("training would not start"));
}
