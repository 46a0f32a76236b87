#include "backend/cuda/conv2d_kernels.h"

#include <cstdint>
#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

// Where element (k, tap * in + c) of cuDNN's filter lies in the parameter.
constexpr size_t stored_at(const FilterLayout& l, size_t k, size_t column) {
  const size_t row = k * l.in * l.taps;
  if (!l.canonical) return row + column;
  const size_t tap = static_cast<uint32_t>(column) / static_cast<uint32_t>(l.in), c = column - tap * l.in;
  return row + c * l.taps + tap;
}

template <class T>
struct CopyWeights {
  FilterLayout l;
  const float* w;
  T* copy;
  constexpr void operator()(size_t k, size_t column) const {
    narrow(w[stored_at(l, k, column)], copy[k * l.in * l.taps + column]);
  }
};

template <class T>
struct TakeGradient {
  FilterLayout l;
  const T* gradient;
  float* dw;
  bool accumulate;
  constexpr void operator()(size_t k, size_t column) const {
    const float value = widen(gradient[k * l.in * l.taps + column]);
    float& to = dw[stored_at(l, k, column)];
    to = accumulate ? to + value : value;
  }
};

template <class T>
struct AddBias {
  size_t channels;
  const float* bias;
  bool relu;
  T* y;
  constexpr void operator()(size_t row, size_t c) const {
    T& to = y[row * channels + c];
    const float sum = bias != nullptr ? widen(to) + bias[c] : widen(to);
    narrow(relu && sum <= 0 ? 0.0F : sum, to);  // NaN stays NaN
  }
};

}  // namespace

void copy_weights(cudaStream_t stream, const FilterLayout& layout, const float* w, DType type, void* copy) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    launch_matrix(stream, layout.out, layout.in * layout.taps, CopyWeights<T>{layout, w, static_cast<T*>(copy)});
  });
}

void take_gradient(cudaStream_t stream, const FilterLayout& layout, DType type, const void* gradient, bool accumulate,
                   float* dw) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    launch_matrix(stream, layout.out, layout.in * layout.taps,
                  TakeGradient<T>{layout, static_cast<const T*>(gradient), dw, accumulate});
  });
}

void add_bias(cudaStream_t stream, DType type, size_t rows, size_t channels, const float* bias, bool relu, void* y) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    launch_matrix(stream, rows, channels, AddBias<T>{channels, bias, relu, static_cast<T*>(y)});
  });
}

}  // namespace lockstep::cuda
