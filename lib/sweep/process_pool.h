// Several commands side by side, each with a supervisor of its own (core/launch.h) that leaves nothing of it behind.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct PooledCommand {
  std::vector<std::string> command;  // searched for in PATH; no shell
  std::string output;                // file that gets its stdout and stderr, after what it holds
  std::vector<int> cpus;             // that it may run on; empty: as this process
  std::optional<double> limit;       // seconds, after which it is ended
};

struct PooledEnd {
  pid_t id = 0;
  int code = 0;  // as a shell has it; 127: could not be started, the reason is in its output
  double seconds = 0;
  bool late = false;  // ended at its limit
};

// One object at a time, in a process without other children or threads. SIGTERM and SIGINT to this process end all
// commands; a second SIGINT ends them at once.
class ProcessPool {
 public:
  ProcessPool();
  ~ProcessPool();  // ends what still runs
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  pid_t start(const PooledCommand& command);
  // The next command that ends; nullopt where none runs.
  std::optional<PooledEnd> wait();
  bool asked_to_stop() const { return asked_to_stop_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    Clock::time_point start;
    std::optional<double> limit;
    bool ended_late = false;
  };
  void end_late();
  void end_all(int signal);

  std::map<pid_t, Running> running_;
  sigset_t mask_;  // of signals, as it was
  bool asked_to_stop_ = false;
  int interrupts_ = 0;
};

}  // namespace lockstep
