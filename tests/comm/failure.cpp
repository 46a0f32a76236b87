// How a run ends when one rank does: real mpirun runs of a small program in which rank 1 goes wrong.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Outcome {
  int exit_code = -1;
  bool timed_out = false;
  double seconds = 0;
  std::string output;  // stdout and stderr

  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

Outcome run(std::vector<std::string> command, double limit_seconds) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);

  Outcome outcome;
  int status = 0;
  bool ended = false;
  while (!ended) {
    ended = waitpid(child, &status, WNOHANG) == child;
    char text[4096];
    for (ssize_t got = 0; (got = read(ends[0], text, sizeof(text))) > 0;)
      outcome.output.append(text, static_cast<size_t>(got));
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!ended && !outcome.timed_out && outcome.seconds > limit_seconds) {
      outcome.timed_out = true;
      kill(child, SIGTERM);  // mpirun ends its ranks before it goes
    }
    if (!ended && outcome.seconds > limit_seconds + 10) kill(child, SIGKILL);
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  close(ends[0]);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// These programs show how a run ends; in a build with the thread sanitizer, what it says about MPI's own locks is no
// part of that.
const char* const quiet_sanitizer = "TSAN_OPTIONS=report_bugs=0";

Outcome run_ranks(const std::string& how, const std::string& kind) {
  return run({MPIEXEC, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-x", quiet_sanitizer, "-np", "2",
              COMM_FAILING_RANK, how, kind},
             30);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
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
  CHECK(count(outcome.output, "train.epochs: expected a number, found many") == 1);
  CHECK_FALSE(outcome.says("MPI_ABORT"));
}

TEST_CASE("srun without PMIx is refused instead of training alone" * doctest::timeout(60)) {
  const Outcome outcome =
      run({"env", quiet_sanitizer, "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2", COMM_FAILING_RANK, "polite"}, 30);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.says("MPI size is 1 but the Slurm step has 4 tasks: start with srun --mpi=pmix"));
}
