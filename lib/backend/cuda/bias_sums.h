// The gradient of a bias: sums over the rows of a matrix, in double and in one order whatever the GPU.
#pragma once

#include <cstddef>

#include "backend/cuda/context.h"
#include "backend/cuda/reduction_shape.h"
#include "core/shape.h"

namespace lockstep::cuda {

constexpr size_t bias_sums_bytes(size_t rows, size_t columns) {
  return column_shape(rows, columns, false).parts() * sizeof(double);
}

// db[c] = the sum of dy[row][c] (accumulate: is added to). parts: bias_sums_bytes(rows, columns). On the compute
// stream.
void bias_sums(const Context& context, DType type, size_t rows, size_t columns, const void* dy, bool accumulate,
               float* db, void* parts);

}  // namespace lockstep::cuda
