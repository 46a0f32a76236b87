// Loops over 16-bit storage that the compiler vectorises for each instruction set.
#include "backend/cpu/isa/half_kernels.h"

#include "core/half.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <class T>
struct Half {
  static void widen_all(size_t n, const void* from, float* to) {
    const T* x = static_cast<const T*>(from);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) to[i] = widen(x[i]);
  }
  static void narrow_all(size_t n, const float* from, void* to) {
    T* y = static_cast<T*>(to);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) narrow(from[i], y[i]);
  }
  static void round(size_t n, const float* from, float* to) {
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
      T rounded;
      narrow(from[i], rounded);
      to[i] = widen(rounded);
    }
  }
  static void add(size_t n, const void* a, const void* b, void* sum) {
    const T *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
    T* y = static_cast<T*>(sum);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) narrow(widen(left[i]) + widen(right[i]), y[i]);
  }
  static void relu(size_t n, const void* from, void* to) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) y[i].bits = widen(x[i]) <= 0 ? static_cast<uint16_t>(0) : x[i].bits;
  }
  static void relu_mask(size_t n, const void* output, const void* from, void* to) {
    const T *y = static_cast<const T*>(output), *dy = static_cast<const T*>(from);
    T* dx = static_cast<T*>(to);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) dx[i].bits = widen(y[i]) > 0 ? dy[i].bits : static_cast<uint16_t>(0);
  }
  static constexpr HalfKernels kernels{widen_all, narrow_all, round, add, relu, relu_mask};
};

}  // namespace

const HalfKernels half_kernels[2] = {Half<Bf16>::kernels, Half<F16>::kernels};

}  // namespace lockstep::LOCKSTEP_ISA
