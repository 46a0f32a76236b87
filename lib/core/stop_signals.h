// Signals that ask the program to come to an end: they are noted, and whoever cares looks when it suits.
#pragma once

#include <signal.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

// "SIGTERM" for 15, "signal 77" for what has no name here.
std::string signal_name(int number);
// 0: none of stop_signal_names().
int signal_number(std::string_view name);
// Those that may ask for an end: SIGTERM, SIGINT, SIGUSR1, ...
std::vector<std::string> stop_signal_names();

// From construction to destruction the named signals do nothing but be noted. The second SIGINT does what it did
// before: whoever presses Ctrl-C twice means it. One object at a time.
class StopSignals {
 public:
  explicit StopSignals(const std::vector<std::string>& names);  // Error: an unknown name
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of the first that came; 0: none.
  int received() const;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace lockstep
