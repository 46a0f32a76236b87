// The simulated GPU's counterpart of lib/backend/cuda/launch.cuh: kernels are loops that run when their stream does.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/reduction_shape.h"
#include "sim/runtime/kernel.h"

namespace lockstep::cuda {

template <class Body>
void launch(cudaStream_t stream, size_t n, const Body& body) {
  if (n == 0) return;
  check(sim::launch_kernel(stream,
                           [=] {
                             for (size_t i = n; i-- > 0;) body(i);  // as good an order as any
                           }),
        "launching a kernel");
}

template <class Reduction, class Value>
void reduce_blocks(size_t n, const Reduction& reduction, size_t blocks, Value* parts) {
  for (size_t block = 0; block < blocks; ++block) {
    std::array<Value, reduction_threads> shared;
    for (size_t thread = 0; thread < reduction_threads; ++thread) {
      Value value = Reduction::identity();
      for (size_t i = block * reduction_threads + thread; i < n; i += blocks * reduction_threads)
        value = Reduction::combine(value, reduction(i));
      shared[thread] = value;
    }
    for (size_t half = reduction_threads / 2; half > 0; half /= 2)
      for (size_t thread = 0; thread < half; ++thread)
        shared[thread] = Reduction::combine(shared[thread], shared[thread + half]);
    parts[block] = shared[0];
  }
}

template <class Reduction, class Value>
void launch_reduction(cudaStream_t stream, size_t n, const Reduction& reduction, Value* parts) {
  check(sim::launch_kernel(stream, [=] { reduce_blocks(n, reduction, reduction_blocks, parts + 1); }),
        "launching a kernel");
  check(sim::launch_kernel(stream,
                           [=] { reduce_blocks(reduction_blocks, PartsOf<Reduction, Value>{parts + 1}, 1, parts); }),
        "launching a kernel");
}

}  // namespace lockstep::cuda
