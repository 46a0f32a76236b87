// Normalisation of contiguous rows: mean and reciprocal standard deviation per row, shared by layer_norm and
// group_norm.
#pragma once

#include <cstdint>

namespace lockstep {

// x [rows, inner]. statistics [rows][2]: mean and 1 / sqrt(biased variance + eps), both in double from two passes.
void row_statistics(int64_t rows, int64_t inner, double eps, const float* x, double* statistics);

}  // namespace lockstep
