#include "dist/running_statistics.h"

#include <vector>

#include "dist/replica_check.h"

namespace lockstep {

void RunningStatistics::agree() {
  if (store_.buffer_values().empty()) return;
  if (policy_ == BatchNormPolicy::rank0) broadcast_buffers(store_, communicator_);
  if (policy_ == BatchNormPolicy::average) average();
  samples_ = 0;
}

// In double: the mean of equal floats is that float.
void RunningStatistics::average() {
  const std::span<float> values = store_.buffer_values();
  const auto weight = static_cast<double>(samples_);
  std::vector<double> sums(values.size() + 1), largest(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) sums[i] = samples_ == 0 ? 0 : weight * static_cast<double>(values[i]);
  sums.back() = weight;
  communicator_.all_reduce(sums, ReduceOp::sum);
  communicator_.all_reduce(largest, ReduceOp::max);
  if (sums.back() == 0) return;
  for (const ModelBuffer& buffer : store_.buffers()) {
    const bool counts = buffer.name.ends_with("num_batches_tracked");
    for (size_t i = buffer.offset; i < buffer.offset + buffer.count; ++i)
      values[i] = static_cast<float>(counts ? largest[i] : sums[i] / sums.back());
  }
}

}  // namespace lockstep
