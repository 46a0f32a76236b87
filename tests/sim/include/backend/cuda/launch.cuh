// The simulated GPU's counterpart of lib/backend/cuda/launch.cuh: kernels are loops that run when their stream does.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <typeinfo>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/reduction_shape.h"
#include "sim/runtime/kernel.h"

namespace lockstep::cuda {

template <class Body>
void launch(cudaStream_t stream, size_t n, const Body& body) {
  if (n == 0) return;
  check(sim::launch_kernel(
            stream,
            [=] {
              for (size_t i = n; i-- > 0;) body(i);  // as good an order as any
            },
            typeid(Body).name()),
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
  check(sim::launch_kernel(
            stream, [=] { reduce_blocks(n, reduction, reduction_blocks, parts + 1); }, typeid(Reduction).name()),
        "launching a kernel");
  check(sim::launch_kernel(
            stream, [=] { reduce_blocks(reduction_blocks, PartsOf<Reduction, Value>{parts + 1}, 1, parts); },
            typeid(Reduction).name()),
        "launching a kernel");
}

template <class Body>
void launch_matrix(cudaStream_t stream, size_t rows, size_t columns, const Body& body) {
  if (rows == 0 || columns == 0) return;
  check(sim::launch_kernel(
            stream,
            [=] {
              for (size_t row = rows; row-- > 0;)
                for (size_t column = columns; column-- > 0;) body(row, column);
            },
            typeid(Body).name()),
        "launching a kernel");
}

template <class Reduction, class Store>
void reduce_columns(const ColumnShape& shape, const Reduction& reduction, const Store& store) {
  using Value = decltype(Reduction::identity());
  const unsigned threads = shape.threads();
  std::array<Value, reduction_threads> shared{};  // of one column
  for (size_t slice = shape.slices; slice-- > 0;) {
    for (size_t column = 0; column < shape.columns; ++column) {
      for (size_t row = 0; row < threads; ++row) {
        Value value = Reduction::identity();
        for (size_t r = slice * threads + row; r < shape.rows; r += shape.slices * threads)
          value = Reduction::combine(value, reduction(r, column));
        shared[row] = value;
      }
      for (size_t half = threads / 2; half > 0; half /= 2)
        for (size_t row = 0; row < half; ++row) shared[row] = Reduction::combine(shared[row], shared[row + half]);
      store(slice, column, shared[0]);
    }
  }
}

template <class Reduction, class Value, class Finish>
void launch_columns(cudaStream_t stream, const ColumnShape& shape, const Reduction& reduction, Value* parts,
                    const Finish& finish) {
  if (shape.columns == 0) return;
  const FinishColumn<Finish> last{finish};
  const char* name = typeid(Reduction).name();
  if (shape.slices == 1)
    return check(sim::launch_kernel(
                     stream, [=] { reduce_columns(shape, reduction, last); }, name),
                 "launching a kernel");
  const StoreSlice<Value> store{parts, shape.columns};
  const SlicesOf<Reduction, Value> slices{parts, shape.columns};
  check(sim::launch_kernel(
            stream, [=] { reduce_columns(shape, reduction, store); }, name),
        "launching a kernel");
  check(sim::launch_kernel(
            stream, [=] { reduce_columns(slices_shape(shape), slices, last); }, name),
        "launching a kernel");
}

}  // namespace lockstep::cuda
