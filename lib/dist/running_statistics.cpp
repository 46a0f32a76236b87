#include "dist/running_statistics.h"

#include <algorithm>

#include "comm/sum_tree.h"
#include "dist/replica_check.h"

namespace lockstep {

RunningStatistics::RunningStatistics(BatchNormPolicy policy, ParameterStore& store, const VirtualRanks& ranks,
                                     Communicator& communicator)
    : policy_(policy), store_(store), communicator_(communicator), samples_(static_cast<size_t>(ranks.held)) {
  if (!ranks.one_each()) kept_ = store.memory().allocate(store.buffer_values().size_bytes() * samples_.size());
  restart();
}

std::span<float> RunningStatistics::of(int64_t piece) {
  const std::span<float> now = store_.buffer_values();
  if (kept_.bytes() == 0) return now;
  return kept_.as<float>().subspan(static_cast<size_t>(piece) * now.size(), now.size());
}

void RunningStatistics::restart() {
  std::ranges::fill(samples_, 0);
  for (int64_t piece = 0; piece < std::ssize(samples_); ++piece)
    if (kept_.bytes() != 0) store_.memory().copy(of(piece), store_.buffer_values());
}

void RunningStatistics::enter(int64_t piece) {
  if (kept_.bytes() != 0) store_.memory().copy(store_.buffer_values(), of(piece));
}

void RunningStatistics::leave(int64_t piece, int64_t samples) {
  if (kept_.bytes() != 0) store_.memory().copy(of(piece), store_.buffer_values());
  samples_[static_cast<size_t>(piece)] += samples;
}

std::span<float> RunningStatistics::all() { return kept_.bytes() == 0 ? store_.buffer_values() : kept_.as<float>(); }

void RunningStatistics::agree() {
  if (store_.buffer_values().empty()) return;
  if (policy_ == BatchNormPolicy::average) {
    std::vector<float> values;
    average(values);
    store_.memory().upload(store_.buffer_values(), values);
  } else {
    enter(0);
    if (policy_ == BatchNormPolicy::rank0) broadcast_buffers(store_, communicator_);
  }
  restart();
}

std::vector<float> RunningStatistics::agreed() {
  std::vector<float> result = store_.memory().downloaded(of(0));
  if (result.empty()) return result;
  if (policy_ == BatchNormPolicy::average) average(result);
  if (policy_ == BatchNormPolicy::rank0) communicator_.broadcast(std::as_writable_bytes(std::span(result)), 0);
  return result;
}

// In double: the mean of equal floats is that float.
void RunningStatistics::average(std::vector<float>& values) {
  const std::vector<float> own = store_.memory().downloaded(all());
  const size_t size = store_.buffer_values().size();
  const auto value_of = [&](size_t piece, size_t i) { return own[piece * size + i]; };
  values.assign(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(size));
  std::vector<double> pieces(samples_.size()), sums(size + 1), largest(size);
  for (size_t i = 0; i <= size; ++i) {
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      const auto weight = static_cast<double>(samples_[piece]);
      const double value = i < size ? static_cast<double>(value_of(piece, i)) : 1;
      pieces[piece] = weight == 0 ? 0 : weight * value;
      if (i < size) largest[i] = piece == 0 ? value : std::max(largest[i], value);
    }
    sums[i] = tree_sum(pieces);
  }
  communicator_.all_reduce(sums, ReduceOp::sum);
  communicator_.all_reduce(largest, ReduceOp::max);
  if (sums.back() == 0) return;
  for (const ModelBuffer& buffer : store_.buffers()) {
    const bool counts = is_counter(buffer.name);
    for (size_t i = buffer.offset; i < buffer.offset + buffer.count; ++i)
      values[i] = static_cast<float>(counts ? largest[i] : sums[i] / sums.back());
  }
}

}  // namespace lockstep
