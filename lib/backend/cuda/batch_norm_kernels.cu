// Batch normalisation's passes. A pass over x sums its distances from the channel's first value, and their squares: as
// that value is one of them, what cancels when the mean is taken out is at most a factor of the number of values, of
// the 53 bits that a double has (Chan, Golub, LeVeque 1983).
#include "backend/cuda/batch_norm_kernels.h"

#include <cmath>

#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

struct Distances : AddPairs {
  ChannelGrid grid;
  const float* x;
  Distances(const ChannelGrid& g, const float* from) : grid(g), x(from) {}
  constexpr PairSum operator()(size_t r, size_t c) const {
    const double d = static_cast<double>(x[grid.at(r, c)]) - static_cast<double>(x[grid.at(0, c)]);
    return {d, d * d};
  }
};

struct Moments {
  double mean, m2;
};
constexpr Moments moments(const ChannelGrid& grid, const float* x, size_t c, const PairSum& sums) {
  const double count = static_cast<double>(grid.values()), mean = sums.first / count;
  const double m2 = sums.second - sums.first * mean;
  return {static_cast<double>(x[grid.at(0, c)]) + mean, m2 < 0 ? 0 : m2};  // NaN stays
}

constexpr void set_affine(const ChannelAffine& affine, size_t c, double mean, double rstd, const float* weight,
                          const float* bias) {
  const float rounded = static_cast<float>(mean);
  const double scale = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * rstd;
  const double rest = mean - static_cast<double>(rounded);
  affine.mean[c] = rounded;
  affine.scale[c] = static_cast<float>(scale);
  affine.shift[c] = static_cast<float>((bias != nullptr ? static_cast<double>(bias[c]) : 0.0) - rest * scale);
}

constexpr float moved(float running, double factor, double batch) {
  return static_cast<float>((1 - factor) * static_cast<double>(running) + factor * batch);
}

constexpr void take(const StatisticsUse& use, size_t c, const Moments& batch) {
  const double factor = use.momentum < 0 ? 1 / static_cast<double>(*use.batches_tracked) : use.momentum;
  use.running_mean[c] = moved(use.running_mean[c], factor, batch.mean);
  use.running_var[c] = moved(use.running_var[c], factor, batch.m2 / (use.count - 1));
  if (use.saved == nullptr) return;
  const double rstd = 1 / ::sqrt(batch.m2 / use.count + use.eps);
  use.saved[c] = batch.mean;
  use.saved[use.channels + c] = rstd;
  if (c == 0) use.saved[2 * use.channels] = use.count;
  set_affine(use.affine, c, batch.mean, rstd, use.weight, use.bias);
}

struct CountBatch {
  float* batches;
  constexpr void operator()(size_t) const { *batches += 1; }
};

struct TakeSums {
  ChannelGrid grid;
  const float* x;
  StatisticsUse use;
  constexpr void operator()(size_t c, const PairSum& sums) const { take(use, c, moments(grid, x, c, sums)); }
};

struct StoreShare {
  ChannelGrid grid;
  const float* x;
  double* shares;
  constexpr void operator()(size_t c, const PairSum& sums) const {
    const Moments own = moments(grid, x, c, sums);
    shares[c] = own.mean;
    shares[grid.channels() + c] = own.m2;
  }
};

struct TakeShare {
  const double* shares;
  StatisticsUse use;
  constexpr void operator()(size_t c) const { take(use, c, {shares[c], shares[use.channels + c]}); }
};

struct TakeRunning {
  double eps;
  const float *mean, *var, *weight, *bias;
  ChannelAffine affine;
  constexpr void operator()(size_t c) const {
    set_affine(affine, c, static_cast<double>(mean[c]), 1 / ::sqrt(static_cast<double>(var[c]) + eps), weight, bias);
  }
};

struct Normalise {
  ChannelGrid grid;
  const float* x;
  ChannelAffine affine;
  float* y;
  constexpr void operator()(size_t row, size_t column) const {
    const size_t i = row * grid.matrix_columns() + column, c = grid.channel_of(row, column);
    y[i] = (x[i] - affine.mean[c]) * affine.scale[c] + affine.shift[c];
  }
};

struct Gradients : AddPairs {
  ChannelGrid grid;
  const float *x, *dy;
  const double* mean;
  Gradients(const ChannelGrid& g, const float* input, const float* from, const double* saved)
      : grid(g), x(input), dy(from), mean(saved) {}
  constexpr PairSum operator()(size_t r, size_t c) const {
    const size_t i = grid.at(r, c);
    const double gradient = dy[i];
    return {gradient, gradient * (static_cast<double>(x[i]) - mean[c])};
  }
};

// With n values per channel and xhat = (x - mean) rstd: dx = w rstd (dy - sum(dy) / n - xhat sum(dy xhat) / n).
constexpr void set_gradient(const GradientUse& use, size_t c, const PairSum& sums) {
  const double mean = use.saved[c], rstd = use.saved[use.channels + c], count = use.saved[2 * use.channels];
  const float rounded = static_cast<float>(mean);
  const double a = (use.weight != nullptr ? static_cast<double>(use.weight[c]) : 1.0) * rstd;
  const double b = -a * rstd * rstd * sums.second / count;
  use.gradient.mean[c] = rounded;
  use.gradient.a[c] = static_cast<float>(a);
  use.gradient.b[c] = static_cast<float>(b);
  use.gradient.c0[c] = static_cast<float>(-a * sums.first / count - b * (mean - static_cast<double>(rounded)));
}

struct TakeGradients {
  GradientUse use;
  constexpr void operator()(size_t c, const PairSum& sums) const {
    const double rstd = use.saved[use.channels + c];
    if (use.dweight != nullptr)
      use.dweight[c] = (use.accumulate ? use.dweight[c] : 0.0F) + static_cast<float>(sums.second * rstd);
    if (use.dbias != nullptr) use.dbias[c] = (use.accumulate ? use.dbias[c] : 0.0F) + static_cast<float>(sums.first);
    if (use.sums == nullptr) return set_gradient(use, c, sums);
    use.sums[c] = sums.first;
    use.sums[use.channels + c] = sums.second;
  }
};

struct TakeGradientSums {
  const double* sums;
  GradientUse use;
  constexpr void operator()(size_t c) const { set_gradient(use, c, {sums[c], sums[use.channels + c]}); }
};

struct InputGradient {
  ChannelGrid grid;
  const float *x, *dy;
  ChannelGradient g;
  float* dx;
  constexpr void operator()(size_t row, size_t column) const {
    const size_t i = row * grid.matrix_columns() + column, c = grid.channel_of(row, column);
    dx[i] = g.a[c] * dy[i] + g.b[c] * (x[i] - g.mean[c]) + g.c0[c];
  }
};

}  // namespace

void count_batch(cudaStream_t stream, float* batches_tracked) { launch(stream, 1, CountBatch{batches_tracked}); }

void use_statistics(cudaStream_t stream, const ChannelGrid& grid, const float* x, PairSum* parts,
                    const StatisticsUse& use) {
  launch_columns(stream, grid.columns(), Distances(grid, x), parts, TakeSums{grid, x, use});
}

void make_shares(cudaStream_t stream, const ChannelGrid& grid, const float* x, PairSum* parts, double* shares) {
  launch_columns(stream, grid.columns(), Distances(grid, x), parts, StoreShare{grid, x, shares});
}

void use_shares(cudaStream_t stream, const double* shares, const StatisticsUse& use) {
  launch(stream, use.channels, TakeShare{shares, use});
}

void use_running(cudaStream_t stream, size_t channels, double eps, const float* running_mean, const float* running_var,
                 const float* weight, const float* bias, const ChannelAffine& affine) {
  launch(stream, channels, TakeRunning{eps, running_mean, running_var, weight, bias, affine});
}

void apply(cudaStream_t stream, const ChannelGrid& grid, const float* x, const ChannelAffine& affine, float* y) {
  launch_matrix(stream, grid.matrix_rows(), grid.matrix_columns(), Normalise{grid, x, affine, y});
}

void sum_gradients(cudaStream_t stream, const ChannelGrid& grid, const float* x, const float* dy, PairSum* parts,
                   const GradientUse& use) {
  launch_columns(stream, grid.columns(), Gradients(grid, x, dy, use.saved), parts, TakeGradients{use});
}

void use_gradient_sums(cudaStream_t stream, const double* sums, const GradientUse& use) {
  launch(stream, use.channels, TakeGradientSums{sums, use});
}

void apply(cudaStream_t stream, const ChannelGrid& grid, const float* x, const float* dy,
           const ChannelGradient& gradient, float* dx) {
  launch_matrix(stream, grid.matrix_rows(), grid.matrix_columns(), InputGradient{grid, x, dy, gradient, dx});
}

}  // namespace lockstep::cuda
