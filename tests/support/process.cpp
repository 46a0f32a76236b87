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
namespace {

// The parent's environment. In a build with the address sanitizer the programs don't look for leaks: MPI keeps memory
// until the process ends, and its plug-ins are unloaded by then, so no suppression can name them.
std::vector<std::string> child_environment() {
  std::vector<std::string> environment;
  std::string sanitizer = "ASAN_OPTIONS=detect_leaks=0";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (variable.starts_with("ASAN_OPTIONS=")) {
      sanitizer = variable + ":detect_leaks=0";
    } else {
      environment.push_back(variable);
    }
  }
  environment.push_back(sanitizer);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

size_t Outcome::count(const std::string& text) const {
  size_t found = 0;
  for (size_t at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) ++found;
  return found;
}

Outcome run_process(std::vector<std::string> command, double limit_seconds) {
  std::vector<std::string> environment = child_environment();
  const std::vector<char*> arguments = pointers(command), variables = pointers(environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_error("pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
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
