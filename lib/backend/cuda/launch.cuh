// How a loop becomes a kernel: over elements in any order, or adding up in one fixed order whatever the GPU. The
// simulated GPU has a file of this name whose loops the host runs (tests/sim/include); the bodies are the same.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/reduction_shape.h"

namespace lockstep::cuda {

template <class Body>
__global__ void elements_kernel(size_t n, const Body body) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

template <class Reduction, class Value>
__global__ void reduction_kernel(size_t n, const Reduction reduction, Value* parts) {
  __shared__ Value shared[reduction_threads];
  const size_t stride = static_cast<size_t>(gridDim.x) * reduction_threads;
  Value value = Reduction::identity();
  for (size_t i = static_cast<size_t>(blockIdx.x) * reduction_threads + threadIdx.x; i < n; i += stride)
    value = Reduction::combine(value, reduction(i));
  shared[threadIdx.x] = value;
  for (int half = reduction_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = Reduction::combine(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = shared[0];
}

template <class Body>
__global__ void matrix_kernel(size_t rows, size_t columns, unsigned lanes, const Body body) {
  const unsigned threads = blockDim.x / lanes;  // of a column
  const size_t first = static_cast<size_t>(blockIdx.x) * lanes + threadIdx.x % lanes;
  const size_t row_step = static_cast<size_t>(gridDim.y) * threads,
               column_step = static_cast<size_t>(gridDim.x) * lanes;
  for (size_t row = static_cast<size_t>(blockIdx.y) * threads + threadIdx.x / lanes; row < rows; row += row_step)
    for (size_t column = first; column < columns; column += column_step) body(row, column);
}

template <class Reduction, class Store>
__global__ void columns_kernel(const ColumnShape shape, const Reduction reduction, const Store store) {
  using Value = decltype(Reduction::identity());
  __shared__ Value shared[reduction_threads];
  const unsigned thread = threadIdx.x, row = shape.row_of(thread), threads = shape.threads();
  const size_t column = static_cast<size_t>(blockIdx.x) * shape.lanes + shape.lane_of(thread);
  const size_t stride = static_cast<size_t>(gridDim.y) * threads;
  Value value = Reduction::identity();
  if (column < shape.columns)
    for (size_t r = static_cast<size_t>(blockIdx.y) * threads + row; r < shape.rows; r += stride)
      value = Reduction::combine(value, reduction(r, column));
  shared[thread] = value;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) shared[thread] = Reduction::combine(shared[thread], shared[thread + half * shape.row_step()]);
  }
  if (row == 0 && column < shape.columns) store(blockIdx.y, column, shared[thread]);
}

// body(i) for 0 <= i < n, in any order.
template <class Body>
void launch(cudaStream_t stream, size_t n, const Body& body) {
  if (n == 0) return;
  constexpr size_t threads = 256, most_blocks = 2048;
  const auto blocks = static_cast<unsigned>(std::min((n + threads - 1) / threads, most_blocks));
  elements_kernel<<<blocks, threads, 0, stream>>>(n, body);
  check(cudaGetLastError(), "launching a kernel");
}

// parts[0] = reduction(0) combined with ... reduction(n - 1), in the order of reduction_shape.h; parts has room for
// reduction_blocks + 1.
template <class Reduction, class Value>
void launch_reduction(cudaStream_t stream, size_t n, const Reduction& reduction, Value* parts) {
  reduction_kernel<<<reduction_blocks, reduction_threads, 0, stream>>>(n, reduction, parts + 1);
  reduction_kernel<<<1, reduction_threads, 0, stream>>>(reduction_blocks, PartsOf<Reduction, Value>{parts + 1}, parts);
  check(cudaGetLastError(), "launching a kernel");
}

// body(row, column) for all of a matrix, in any order; neighbouring threads take neighbouring columns.
template <class Body>
void launch_matrix(cudaStream_t stream, size_t rows, size_t columns, const Body& body) {
  if (rows == 0 || columns == 0) return;
  constexpr size_t threads = 256, most_blocks = 65535;  // of one side of a grid
  const unsigned lanes = power_of_two(columns, threads);
  const size_t rows_of_block = threads / lanes;
  const dim3 grid(static_cast<unsigned>(std::min((columns + lanes - 1) / lanes, most_blocks)),
                  static_cast<unsigned>(std::min((rows + rows_of_block - 1) / rows_of_block, most_blocks)));
  matrix_kernel<<<grid, threads, 0, stream>>>(rows, columns, lanes, body);
  check(cudaGetLastError(), "launching a kernel");
}

// finish(column, reduction(0, column) combined with ... reduction(rows - 1, column)) for every column, in the order of
// reduction_shape.h. parts has room for shape.parts().
template <class Reduction, class Value, class Finish>
void launch_columns(cudaStream_t stream, const ColumnShape& shape, const Reduction& reduction, Value* parts,
                    const Finish& finish) {
  if (shape.columns == 0) return;
  const dim3 grid(static_cast<unsigned>(shape.column_blocks()), shape.slices);
  if (shape.slices == 1) {
    columns_kernel<<<grid, reduction_threads, 0, stream>>>(shape, reduction, FinishColumn<Finish>{finish});
  } else {
    const ColumnShape second = slices_shape(shape);
    columns_kernel<<<grid, reduction_threads, 0, stream>>>(shape, reduction, StoreSlice<Value>{parts, shape.columns});
    columns_kernel<<<static_cast<unsigned>(second.column_blocks()), reduction_threads, 0, stream>>>(
        second, SlicesOf<Reduction, Value>{parts, shape.columns}, FinishColumn<Finish>{finish});
  }
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace lockstep::cuda
