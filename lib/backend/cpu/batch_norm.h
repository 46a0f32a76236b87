// Batch normalisation's pieces: statistics of one rank's share, their combination, and what the running averages make
// of them. The plan strings them together; batch normalisation over several ranks combines statistics in between.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "backend/cpu/isa/norm_kernels.h"
#include "backend/statistics_reducer.h"
#include "core/tensor.h"

namespace lockstep {

// Channels of [N, C, ...] with any channel block; [N, C] is taken as N pixels of one block of C channels.
ChannelLayout channel_layout(const TensorDesc& input);

// Per channel: mean and m2 = sum (x - mean)^2 over `count` values.
struct ChannelStatistics {
  double count = 0;
  std::span<double> mean, m2;
};

// Two passes over x. mean_f32: scratch of C floats, left holding the mean.
void compute_statistics(const ChannelLayout& layout, const float* x, ChannelStatistics& out, float* mean_f32);
// Adds the statistics of another share of the batch (Chan, Golub, LeVeque 1979).
void merge_statistics(ChannelStatistics& into, const ChannelStatistics& other);
// The share of this rank (count 0: no samples) becomes the whole batch, as by merging all shares. Two collective sums:
// counts and sums first, then the squares about the common mean, so that nothing cancels. scratch: C + 1 values.
void sum_over_ranks(StatisticsReducer& reducer, ChannelStatistics& share, std::span<double> scratch);
// running = (1 - f) * running + f * batch, with the unbiased variance; f = momentum, or 1 / batches_tracked when empty.
void update_running(const ChannelStatistics& batch, std::optional<double> momentum, float* running_mean,
                    float* running_var, float* batches_tracked);

}  // namespace lockstep
