// Dropout: 32-bit integer mixing that vectorises, one byte of mask per element.
#include "backend/cpu/isa/dropout_kernels.h"

#include "backend/dropout_hash.h"
#include "core/half.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <class T>
struct Dropout {
  static void forward(size_t n, uint32_t k0, uint32_t k1, uint32_t threshold, float scale, const void* from, void* to,
                      uint8_t* keep) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
      const uint32_t hash = dropout_hash(static_cast<uint32_t>(i), k0, k1);
      keep[i] = hash >= threshold ? 1 : 0;
      narrow(widen(x[i]) * (hash >= threshold ? scale : 0.0F), y[i]);
    }
  }
  static void apply(size_t n, float scale, const uint8_t* keep, const void* from, void* to) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
#pragma omp simd
    for (size_t i = 0; i < n; ++i) narrow(widen(x[i]) * (keep[i] != 0 ? scale : 0.0F), y[i]);
  }
  static constexpr DropoutKernels kernels{forward, apply};
};

}  // namespace

const DropoutKernels dropout_kernels[3] = {Dropout<float>::kernels, Dropout<Bf16>::kernels, Dropout<F16>::kernels};

}  // namespace lockstep::LOCKSTEP_ISA
