// What the batch norm plan (batch_norm.cpp) asks of the kernels (batch_norm_kernels.cu). All pointers are device
// memory; work is queued on the stream. Sums are in double, in the order of reduction_shape.h.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/channel_grid.h"
#include "backend/cuda/pair_sum.h"

namespace lockstep::cuda {

// y = (x - mean) * scale + shift, of C floats each; mean is the real one rounded, and shift makes up for that.
struct ChannelAffine {
  float *mean, *scale, *shift;
};

// dx = a dy + b (x - mean) + c0.
struct ChannelGradient {
  float *mean, *a, *b, *c0;
};

// What follows from the statistics of a batch: running averages, what backward needs, the affine map.
struct StatisticsUse {
  size_t channels;
  double count;  // values per channel
  double eps;
  double momentum;             // below zero: a cumulative average, by the number of batches
  const float *weight, *bias;  // or null
  float *running_mean, *running_var;
  const float* batches_tracked;  // with this batch
  double* saved;                 // mean [C], rstd [C], count; null: only the running averages are wanted
  ChannelAffine affine;
};

void count_batch(cudaStream_t stream, float* batches_tracked);
// Statistics of x, one pass: used at once, or written to shares: mean [C], m2 [C] (sums of squares about it).
void use_statistics(cudaStream_t stream, const ChannelGrid& grid, const float* x, PairSum* parts,
                    const StatisticsUse& use);
void make_shares(cudaStream_t stream, const ChannelGrid& grid, const float* x, PairSum* parts, double* shares);
void use_shares(cudaStream_t stream, const double* shares, const StatisticsUse& use);
// For inference.
void use_running(cudaStream_t stream, size_t channels, double eps, const float* running_mean, const float* running_var,
                 const float* weight, const float* bias, const ChannelAffine& affine);
void apply(cudaStream_t stream, const ChannelGrid& grid, const float* x, const ChannelAffine& affine, float* y);

// sum(dy) and sum(dy (x - mean)) per channel: dweight and dbias (or null) are of this x alone; the coefficients follow
// at once, or from sums [2][C] that have been added up over the ranks.
struct GradientUse {
  size_t channels;
  const double* saved;
  const float* weight;
  float *dweight, *dbias;
  bool accumulate;
  ChannelGradient gradient;
  double* sums;  // not null: the sums are written there instead of making coefficients
};
void sum_gradients(cudaStream_t stream, const ChannelGrid& grid, const float* x, const float* dy, PairSum* parts,
                   const GradientUse& use);
void use_gradient_sums(cudaStream_t stream, const double* sums, const GradientUse& use);
// dx may be dy.
void apply(cudaStream_t stream, const ChannelGrid& grid, const float* x, const float* dy,
           const ChannelGradient& gradient, float* dx);

}  // namespace lockstep::cuda
