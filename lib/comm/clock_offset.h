// One time for all ranks. Processes of a node share a monotonic clock; those of nodes started at different times. How
// far they are apart follows from meetings: no rank leaves a barrier before the others have entered it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "comm/communicator.h"

namespace lockstep {

struct ClockOffset {
  int64_t offset = 0;  // nanoseconds to add to this rank's time to have rank 0's
  int64_t error = 0;   // of it, at most, while it is measured; 0: the same clock
  bool operator==(const ClockOffset& other) const = default;
};

// What is known of the difference between two clocks, in nanoseconds.
struct ClockBounds {
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();

  // A barrier that rank 0 entered and left at these times of its clock, and this rank at those of its own.
  void meet(int64_t entered_0, int64_t left_0, int64_t entered, int64_t left);
  void meet(const ClockBounds& other);  // of the same two clocks
  ClockOffset middle() const;
};

// Collective, takes some dozens of barriers. now: this rank's clock, in nanoseconds. clock: the same text on ranks
// whose clock is the same.
ClockOffset align_clocks(Communicator& ranks, const std::function<int64_t()>& now, const std::string& clock);

// Names the monotonic clock of this process: that of a start of the machine, in a time namespace.
std::string monotonic_clock();

}  // namespace lockstep
