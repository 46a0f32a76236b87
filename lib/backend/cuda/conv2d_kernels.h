// What is done beside cuDNN's passes: copies of weights and gradients between fp32 as stored and what cuDNN reads and
// writes, and a bias and ReLU where they can't be fused. All pointers are device memory; work is queued on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/shape.h"

namespace lockstep::cuda {

// A filter [out][kh][kw][in], of `in` channels per group and kh * kw taps; `canonical`: the parameter is stored
// [out][in][kh][kw].
struct FilterLayout {
  size_t out, in, taps;
  bool canonical;
  size_t count() const { return out * in * taps; }
};

// copy = w, in cuDNN's layout and of a type (rounded to nearest).
void copy_weights(cudaStream_t stream, const FilterLayout& layout, const float* w, DType type, void* copy);
// dw = gradient, or dw += gradient, from cuDNN's layout and a type.
void take_gradient(cudaStream_t stream, const FilterLayout& layout, DType type, const void* gradient, bool accumulate,
                   float* dw);
// y = y + bias (null: none), then ReLU where it is wanted; y [rows][channels], rounded to the type once more.
void add_bias(cudaStream_t stream, DType type, size_t rows, size_t channels, const float* bias, bool relu, void* y);

}  // namespace lockstep::cuda
