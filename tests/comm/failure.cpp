// How a run ends when one rank does: real mpirun runs of a small program in which rank 1 goes wrong.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/process.h"

using lockstep::test::mpirun;
using lockstep::test::Outcome;
using lockstep::test::run_process;

namespace {

// These programs show how a run ends; in a build with the thread sanitizer, what it says about MPI's own locks is no
// part of that.
const char* const quiet_sanitizer = "TSAN_OPTIONS=report_bugs=0";

Outcome run_ranks(const std::string& how, const std::string& kind) {
  return run_process(mpirun(2, {"env", quiet_sanitizer, COMM_FAILING_RANK, how, kind}), 30);
}

}  // namespace

TEST_CASE("a rank that throws inside a loop of reductions ends all ranks with its message" * doctest::timeout(120)) {
  for (const char* kind : {"shm", "mpi"}) {
    const Outcome outcome = run_ranks("throw", kind);
    CAPTURE(outcome.output);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.seconds < 10);
    CHECK(outcome.exit_code == 4);
    CHECK(outcome.says("rank 1: step 100: the disk is full"));
  }
}

TEST_CASE("a rank that is killed ends all ranks" * doctest::timeout(120)) {
  for (const char* kind : {"shm", "mpi"}) {
    const Outcome outcome = run_ranks("kill", kind);
    CAPTURE(outcome.output);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.seconds < 10);
    CHECK(outcome.exit_code != 0);
  }
}

TEST_CASE("a rank that stays away is named and ends all ranks" * doctest::timeout(120)) {
  for (const char* kind : {"shm", "mpi"}) {
    const Outcome outcome = run_ranks("late", kind);
    CAPTURE(outcome.output);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.seconds < 15);
    CHECK(outcome.exit_code == 4);
    CHECK(outcome.says("rank 0: waited 1 s in all_reduce_sum #"));
    CHECK(outcome.says("for rank 1"));
  }
}

TEST_CASE("a mistake that all ranks see ends with one message and no abort" * doctest::timeout(60)) {
  const Outcome outcome = run_ranks("polite", "auto");
  CAPTURE(outcome.output);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.count("train.epochs: expected a number, found many") == 1);
  CHECK_FALSE(outcome.says("MPI_ABORT"));
}

TEST_CASE("srun without PMIx is refused instead of training alone" * doctest::timeout(60)) {
  const Outcome outcome = run_process(
      {"env", quiet_sanitizer, "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2", COMM_FAILING_RANK, "polite"}, 30);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.says("MPI size is 1 but the Slurm step has 4 tasks: start with srun --mpi=pmix"));
}
