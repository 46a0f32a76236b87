#include "dist/running_statistics.h"

#include <algorithm>

#include "dist/replica_check.h"

namespace lockstep {

RunningStatistics::RunningStatistics(ParameterStore& store, const VirtualRanks& ranks)
    : store_(store), size_(store.buffer_values().size()) {
  if (!ranks.one_each()) kept_.resize(size_ * static_cast<size_t>(ranks.held));
}

void RunningStatistics::reset() {
  for (size_t at = 0; at < kept_.size(); at += size_)
    std::ranges::copy(store_.buffer_values(), kept_.begin() + static_cast<std::ptrdiff_t>(at));
}

void RunningStatistics::enter(int64_t piece) {
  if (!kept_.empty()) std::ranges::copy(of(piece), store_.buffer_values().begin());
}

void RunningStatistics::leave(int64_t piece) {
  if (!kept_.empty()) std::ranges::copy(store_.buffer_values(), of(piece).begin());
}

std::span<float> RunningStatistics::all() { return kept_.empty() ? store_.buffer_values() : std::span(kept_); }

void RunningStatistics::agree(Communicator& communicator) {
  enter(0);
  broadcast_buffers(store_, communicator);
  reset();
}

}  // namespace lockstep
