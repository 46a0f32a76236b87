// Runs another program with a time limit and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

struct Outcome {
  int exit_code = -1;  // 128 + signal when a signal ended it
  bool timed_out = false;
  double seconds = 0;
  std::string output;  // stdout and stderr

  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
  size_t count(const std::string& text) const;  // how often it says it
};

// Searches PATH; no shell. At the limit the program gets SIGTERM (mpirun then ends its ranks), ten seconds later
// SIGKILL.
Outcome run_process(std::vector<std::string> command, double limit_seconds);

// mpirun with `ranks` ranks of the program, as root or not, on any number of cores.
std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& program);

}  // namespace lockstep::test
