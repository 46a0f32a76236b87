#include "core/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t longest_output = 64 << 10;
constexpr auto look_again = std::chrono::milliseconds(5);

// What the program said so far; false: it has closed its output.
bool read_what_is_there(int from, std::string& output) {
  char text[4096];
  for (;;) {
    const ssize_t got = read(from, text, sizeof text);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    output.append(text, std::min(static_cast<size_t>(got), longest_output - output.size()));
  }
}

pid_t start(std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw_error("{} cannot be started: {}", command[0], std::strerror(problem));
  return child;
}

}  // namespace

ProgramAnswer run_program(std::vector<std::string> command, double limit_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_error("{}: no pipe: {}", command[0], std::strerror(errno));
  pid_t child = 0;
  try {
    child = start(command, ends[1]);
  } catch (...) {
    close(ends[0]), close(ends[1]);
    throw;
  }
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);

  ProgramAnswer answer;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
  int status = 0;
  bool ended = false, late = false;
  while (!ended && !late) {
    ended = waitpid(child, &status, WNOHANG) == child;
    read_what_is_there(ends[0], answer.output);
    late = Clock::now() > end;
    if (!ended && !late) std::this_thread::sleep_for(look_again);
  }
  if (!ended) kill(child, SIGKILL), waitpid(child, &status, 0);
  close(ends[0]);
  if (!ended) throw_error("{} has not answered within {:g} s", command[0], limit_seconds);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

}  // namespace lockstep
