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

}  // namespace lockstep::cuda
