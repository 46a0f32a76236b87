// What the pooling plans (pool2d.cpp) ask of the kernels (pool2d_kernels.cu), on planes of `block` channels as on the
// CPU (backend/cpu/isa/pool_kernels.h). All pointers are device memory; work is queued on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/shape.h"

namespace lockstep::cuda {

// One axis. Output i covers every step-th input of [begin[i], end[i]); input k lies under no other outputs than
// [first[k], last[k]), last excluded, and under all of them where step is 1.
struct PoolSide {
  size_t in, out;
  int32_t step;
  const int32_t *begin, *end, *first, *last;
  const float* divisor;
};
struct PoolGrid {
  size_t planes, block;
  PoolSide rows, cols;
};

// saved: of each maximum its position in its window, row by row: a byte, or four where windows have more pixels
// (wide). Null in inference.
void max_pool(cudaStream_t stream, DType type, const PoolGrid& grid, const void* x, void* y, void* saved, bool wide);
// Each input gathers from the windows it lies under, in the order in which the CPU scatters. y: not null where only
// gradients of y > 0 pass.
void max_pool_backward(cudaStream_t stream, DType type, const PoolGrid& grid, const void* dy, const void* y,
                       const void* saved, bool wide, void* dx);
void average_pool(cudaStream_t stream, DType type, const PoolGrid& grid, const void* x, void* y);
void average_pool_backward(cudaStream_t stream, DType type, const PoolGrid& grid, const void* dy, void* dx);

}  // namespace lockstep::cuda
