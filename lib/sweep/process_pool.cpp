#include "sweep/process_pool.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/launch.h"
#include "sweep/file_lock.h"

namespace lockstep {
namespace {

constexpr int kCannotStart = 127;  // as shells have it
constexpr double kPatience = 15;   // seconds from the request to end until the end

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, number);
  return set;
}

void stay_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t* set = CPU_ALLOC(CPU_SETSIZE * 8);
  const size_t bytes = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const int problem = sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
  if (problem != 0) throw_error("CPUs {}: {}", fmt::join(cpus, ","), std::strerror(errno));
}

int supervise(const PooledCommand& command) {
  try {
    stay_on(command.cpus);
    return Launcher(0).run(command.command).code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    return kCannotStart;
  }
}

// The child, in a group of its own: a terminal's interrupt reaches the parent alone, which passes it on.
[[noreturn]] void be_supervisor(const PooledCommand& command, pid_t parent, const sigset_t& mask, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int code = supervise(command);
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

ProcessPool::ProcessPool() {
  const sigset_t set = signals();
  sigprocmask(SIG_BLOCK, &set, &mask_);
}

ProcessPool::~ProcessPool() {
  interrupts_ = 2;
  while (wait()) {
  }
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

pid_t ProcessPool::start(const PooledCommand& command) {
  const int output = open(command.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) throw_error("{}: cannot be written: {}", command.output, std::strerror(errno));
  take_lock(output);     // as long as the command has it open: others see that it runs (is_run_here)
  std::fflush(nullptr);  // what is in the buffers is this process's to write
  const pid_t parent = getpid(), child = fork();
  const int problem = errno;
  if (child == 0) be_supervisor(command, parent, mask_, output);
  close(output);
  if (child < 0) throw_error("{} cannot be started: {}", command.command[0], std::strerror(problem));
  running_[child] = {.start = Clock::now(), .limit = command.limit};
  return child;
}

void ProcessPool::end_all(int signal) {
  for (const auto& [child, running] : running_) kill(child, signal);
}

void ProcessPool::end_late() {
  for (auto& [child, running] : running_) {
    if (!running.limit) continue;
    const double late = std::chrono::duration<double>(Clock::now() - running.start).count() - *running.limit;
    if (late > 0 && !running.ended_late) {
      running.ended_late = true;
      kill(child, SIGTERM);
    } else if (late > kPatience) {  // its supervisor ends it at the second interrupt
      kill(child, SIGINT);
    }
  }
}

std::optional<PooledEnd> ProcessPool::wait() {
  while (!running_.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (const auto found = running_.find(child); child > 0 && found != running_.end()) {
      PooledEnd end{.id = child,
                    .code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                    .seconds = std::chrono::duration<double>(Clock::now() - found->second.start).count(),
                    .late = found->second.ended_late};
      running_.erase(found);
      return end;
    }
    const sigset_t set = signals();
    const timespec second{1, 0};
    const int number = sigtimedwait(&set, nullptr, &second);
    if (number == SIGTERM || number == SIGINT) {
      asked_to_stop_ = true;
      if (number == SIGINT) ++interrupts_;
      end_all(SIGTERM);
    }
    if (interrupts_ > 1) end_all(SIGINT);  // again and again: a supervisor needs two, and equal signals may become one
    end_late();
  }
  return std::nullopt;
}

}  // namespace lockstep
