#include "backend/cuda/row_statistics.h"

#include <cmath>

#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

// As in batch_norm_kernels.cu: distances from the row's first number.
struct Distances : AddPairs {
  size_t inner;
  const float* x;
  Distances(size_t row, const float* from) : inner(row), x(from) {}
  constexpr PairSum operator()(size_t i, size_t row) const {
    const double d = static_cast<double>(x[row * inner + i]) - static_cast<double>(x[row * inner]);
    return {d, d * d};
  }
};

struct StoreStatistics {
  size_t inner;
  double eps;
  const float* x;
  double* statistics;
  constexpr void operator()(size_t row, const PairSum& sums) const {
    const double count = static_cast<double>(inner), mean = sums.first / count;
    const double variance = sums.second / count - mean * mean;
    statistics[2 * row] = static_cast<double>(x[row * inner]) + mean;
    statistics[2 * row + 1] = 1 / ::sqrt((variance < 0 ? 0 : variance) + eps);
  }
};

}  // namespace

void row_statistics(cudaStream_t stream, const ColumnShape& shape, double eps, const float* x, PairSum* parts,
                    double* statistics) {
  launch_columns(stream, shape, Distances(shape.rows, x), parts, StoreStatistics{shape.rows, eps, x, statistics});
}

}  // namespace lockstep::cuda
