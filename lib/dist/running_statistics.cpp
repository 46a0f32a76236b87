#include "dist/running_statistics.h"

#include <algorithm>

#include "comm/sum_tree.h"
#include "dist/replica_check.h"

namespace lockstep {

RunningStatistics::RunningStatistics(BatchNormPolicy policy, ParameterStore& store, const VirtualRanks& ranks,
                                     Communicator& communicator)
    : policy_(policy), store_(store), communicator_(communicator), samples_(static_cast<size_t>(ranks.held)) {
  if (!ranks.one_each()) kept_.resize(store.buffer_values().size() * samples_.size());
  restart();
}

std::span<float> RunningStatistics::of(int64_t piece) {
  const std::span<float> now = store_.buffer_values();
  return kept_.empty() ? now : std::span(kept_).subspan(static_cast<size_t>(piece) * now.size(), now.size());
}

void RunningStatistics::restart() {
  std::ranges::fill(samples_, 0);
  if (kept_.empty()) return;
  for (int64_t piece = 0; piece < std::ssize(samples_); ++piece)
    std::ranges::copy(store_.buffer_values(), of(piece).begin());
}

void RunningStatistics::enter(int64_t piece) {
  if (!kept_.empty()) std::ranges::copy(of(piece), store_.buffer_values().begin());
}

void RunningStatistics::leave(int64_t piece, int64_t samples) {
  if (!kept_.empty()) std::ranges::copy(store_.buffer_values(), of(piece).begin());
  samples_[static_cast<size_t>(piece)] += samples;
}

std::span<float> RunningStatistics::all() { return kept_.empty() ? store_.buffer_values() : std::span(kept_); }

void RunningStatistics::agree() {
  if (store_.buffer_values().empty()) return;
  if (policy_ == BatchNormPolicy::average) {
    average(store_.buffer_values());
  } else {
    enter(0);
    if (policy_ == BatchNormPolicy::rank0) broadcast_buffers(store_, communicator_);
  }
  restart();
}

std::vector<float> RunningStatistics::agreed() {
  const std::span<const float> first = of(0);
  std::vector<float> result(first.begin(), first.end());
  if (result.empty()) return result;
  if (policy_ == BatchNormPolicy::average) average(result);
  if (policy_ == BatchNormPolicy::rank0) communicator_.broadcast(std::as_writable_bytes(std::span(result)), 0);
  return result;
}

// In double: the mean of equal floats is that float. `values` may be the store's own buffers.
void RunningStatistics::average(std::span<float> values) {
  std::vector<double> pieces(samples_.size()), sums(values.size() + 1), largest(values.size());
  for (size_t i = 0; i <= values.size(); ++i) {
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      const auto weight = static_cast<double>(samples_[piece]);
      const double value = i < values.size() ? static_cast<double>(of(static_cast<int64_t>(piece))[i]) : 1;
      pieces[piece] = weight == 0 ? 0 : weight * value;
      if (i < values.size()) largest[i] = piece == 0 ? value : std::max(largest[i], value);
    }
    sums[i] = tree_sum(pieces);
  }
  communicator_.all_reduce(sums, ReduceOp::sum);
  communicator_.all_reduce(largest, ReduceOp::max);
  if (sums.back() == 0) {
    std::ranges::copy(of(0), values.begin());
    return;
  }
  for (const ModelBuffer& buffer : store_.buffers()) {
    const bool counts = is_counter(buffer.name);
    for (size_t i = buffer.offset; i < buffer.offset + buffer.count; ++i)
      values[i] = static_cast<float>(counts ? largest[i] : sums[i] / sums.back());
  }
}

}  // namespace lockstep
