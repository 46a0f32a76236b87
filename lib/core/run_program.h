// Runs another program for its answer: no shell, a time limit, nothing of it left behind.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct ProgramAnswer {
  int exit_code = 0;   // 128 + signal when a signal ended it
  std::string output;  // stdout and stderr, 64 KiB at most
};

// command[0] is searched for in PATH. Its input is empty. Error: cannot be started, or still runs after limit_seconds
// (it is killed then).
ProgramAnswer run_program(std::vector<std::string> command, double limit_seconds);

}  // namespace lockstep
