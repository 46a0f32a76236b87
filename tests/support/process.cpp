#include "support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace lockstep::test {

Outcome run_process(std::vector<std::string> command, double limit_seconds) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_error("pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) throw_error("{} cannot be started: {}", command[0], std::strerror(failed));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);

  Outcome outcome;
  int status = 0;
  bool ended = false;
  while (!ended) {
    ended = waitpid(child, &status, WNOHANG) == child;
    char text[4096];
    for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;)
      outcome.output.append(text, static_cast<size_t>(got));
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!ended && !outcome.timed_out && outcome.seconds > limit_seconds) {
      outcome.timed_out = true;
      kill(child, SIGTERM);
    }
    if (!ended && outcome.seconds > limit_seconds + 10) kill(child, SIGKILL);
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  close(ends[0]);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& program) {
  std::vector<std::string> command{
      LOCKSTEP_MPIEXEC, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", std::to_string(ranks)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace lockstep::test
