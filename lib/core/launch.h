// One start of a command, with all processes that come of it: signals are passed on to it, and when it has ended
// nothing of it runs any more.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace lockstep {

struct LaunchEnd {
  int code = 0;  // as a shell has it: 128 + signal when a signal ended it
  bool by_signal = false;
  double seconds = 0;            // from start to end
  std::string describe() const;  // "exit code 1", "exit code 137 (128 + SIGKILL)", "signal SIGSEGV"
};

// While it lives, the signals SIGTERM, SIGINT and SIGUSR1 to this process wait to be passed on, and orphans of its
// launches become its children. One object at a time, in a process without other children or threads.
class Launcher {
 public:
  // pass_as: the signal that a launch gets for SIGTERM and SIGINT; 0: the same.
  explicit Launcher(int pass_as);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Runs the command (searched for in PATH; input empty; its own process group, which gets SIGTERM should this process
  // die) to its end, then ends what is left of it. The second SIGINT ends all of it at once. Error: cannot be started.
  LaunchEnd run(std::vector<std::string> command);
  // Returns early when one of the signals comes.
  void pause(double seconds);
  // One of the signals came: there is nothing to start again.
  bool asked_to_stop() const { return signal_ != 0; }
  int signal() const { return signal_; }

 private:
  void pass_on(int number, int group);

  int pass_as_, signal_ = 0, interrupts_ = 0;
  sigset_t mask_;  // of signals, as it was
};

}  // namespace lockstep
