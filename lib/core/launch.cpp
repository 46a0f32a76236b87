#include "core/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/stop_signals.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int passed_on[] = {SIGTERM, SIGINT, SIGUSR1};
constexpr int cannot_start = 127;  // as shells have it

sigset_t set_of_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : passed_on) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

// The next of them, or 0 after so many seconds.
int next_signal(double seconds) {
  const sigset_t set = set_of_signals();
  const auto whole = static_cast<time_t>(seconds);
  const timespec limit{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  const int number = sigtimedwait(&set, nullptr, &limit);
  return number > 0 ? number : 0;
}

// Between fork and exec: system calls only. The reason why exec failed goes back through `report`.
[[noreturn]] void become(char* const* arguments, const sigset_t& mask, pid_t parent, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(cannot_start);  // it died before
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  execvp(arguments[0], arguments);
  const int problem = errno;
  if (write(report, &problem, sizeof problem) < 0) _exit(cannot_start);
  _exit(cannot_start);
}

// The parent in the text of /proc/PID/stat, "PID (any name) STATE PARENT ...".
pid_t parent_in(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 4 > stat.size() ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

// Orphans have become children of this process, and theirs do when they die: so this ends when none is left.
void end_all_children() {
  const pid_t self = getpid();
  for (bool some = true; some;) {
    std::error_code gone;  // processes come and go meanwhile
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      const pid_t process = std::atoi(entry.path().filename().c_str());
      std::string stat;
      if (process > 0 && std::getline(std::ifstream(entry.path() / "stat"), stat) && parent_in(stat) == self)
        kill(process, SIGKILL);
    }
    some = waitpid(-1, nullptr, 0) > 0 || errno == EINTR;
  }
}

}  // namespace

std::string LaunchEnd::describe() const {
  if (by_signal) return "signal " + signal_name(code - 128);
  if (code > 128 && code <= 128 + 64) return fmt::format("exit code {} (128 + {})", code, signal_name(code - 128));
  return fmt::format("exit code {}", code);
}

Launcher::Launcher(int pass_as) : pass_as_(pass_as) {
  const sigset_t set = set_of_signals();
  sigprocmask(SIG_BLOCK, &set, &mask_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Launcher::~Launcher() {
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void Launcher::pass_on(int number, int group) {
  signal_ = number;
  if (number == SIGINT && ++interrupts_ > 1) {
    kill(-group, SIGKILL);
    return;
  }
  kill(-group, pass_as_ != 0 && number != SIGUSR1 ? pass_as_ : number);
}

LaunchEnd Launcher::run(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) throw_error("{}: no pipe: {}", command[0], std::strerror(errno));
  const auto start = Clock::now();
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(arguments.data(), mask_, parent, report[1]);
  close(report[1]);
  int problem = child < 0 ? errno : 0;
  if (child > 0 && read(report[0], &problem, sizeof problem) != sizeof problem) problem = 0;
  close(report[0]);
  if (problem != 0) {
    if (child > 0) waitpid(child, nullptr, 0);
    throw_error("{} cannot be started: {}", command[0], std::strerror(problem));
  }

  LaunchEnd end;
  int status = 0;
  constexpr double look_again = 1;  // seconds, should a SIGCHLD be lost among others
  while (waitpid(child, &status, WNOHANG) != child) {
    const int number = next_signal(look_again);
    if (number != 0 && number != SIGCHLD) pass_on(number, child);
  }
  end.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  end.by_signal = WIFSIGNALED(status);
  end.code = end.by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  kill(-child, SIGKILL);
  end_all_children();
  return end;
}

void Launcher::pause(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (signal_ == 0) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0) return;
    const int number = next_signal(left);
    if (number != SIGCHLD) signal_ = number;
  }
}

}  // namespace lockstep
