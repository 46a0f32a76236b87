#include "comm/clock_offset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "comm/gather.h"

namespace lockstep {

// Who left knows that the other had entered: left >= entered, on one clock.
void ClockBounds::meet(int64_t entered_0, int64_t left_0, int64_t entered, int64_t left) {
  low = std::max(low, entered_0 - left);
  high = std::min(high, left_0 - entered);
}

void ClockBounds::meet(const ClockBounds& other) {
  low = std::max(low, other.low);
  high = std::min(high, other.high);
}

// Clocks that run at different speeds may leave nothing between the bounds.
ClockOffset ClockBounds::middle() const {
  const int64_t half = (high - low) / 2;
  return {.offset = low + half, .error = std::max<int64_t>(1, half < 0 ? -half : half)};
}

ClockOffset align_clocks(Communicator& ranks, const std::function<int64_t()>& now, const std::string& clock) {
  constexpr size_t kMeetings = 40;
  struct Meeting {
    int64_t entered, left;
  };
  std::array<Meeting, kMeetings> mine{};
  for (Meeting& meeting : mine) {
    meeting.entered = now();
    ranks.barrier();
    meeting.left = now();
  }
  std::array<Meeting, kMeetings> first = mine;
  ranks.broadcast(std::as_writable_bytes(std::span(first)), 0);
  ClockBounds bounds;
  for (size_t i = 0; i < kMeetings; ++i) bounds.meet(first[i].entered, first[i].left, mine[i].entered, mine[i].left);

  // What one rank of a node knows holds for all of them, and keeps them together.
  const std::vector<std::string> clocks = gather_texts(clock, ranks);
  const std::vector<ClockBounds> all = gather_values<ClockBounds>({&bounds, 1}, ranks);
  if (clocks.front() == clock) return {};
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (clocks[rank] == clock) bounds.meet(all[rank]);
  }
  return bounds.middle();
}

std::string monotonic_clock() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code none;  // an old kernel has no time namespaces
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/time", none).string();
}

}  // namespace lockstep
