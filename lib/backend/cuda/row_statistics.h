// Mean and reciprocal standard deviation of contiguous rows, for layer and group normalisation.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/pair_sum.h"
#include "backend/cuda/reduction_shape.h"

namespace lockstep::cuda {

// The shape of any sum over each of `rows` rows of `inner` numbers: a row is a column of it.
constexpr ColumnShape row_statistics_shape(size_t rows, size_t inner) { return column_shape(inner, rows, true); }

// x [rows][inner]. statistics [rows][2]: mean and 1 / sqrt(biased variance + eps). parts: room for shape.parts().
void row_statistics(cudaStream_t stream, const ColumnShape& shape, double eps, const float* x, PairSum* parts,
                    double* statistics);

}  // namespace lockstep::cuda
