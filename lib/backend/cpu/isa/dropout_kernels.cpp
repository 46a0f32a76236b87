// Dropout: 32-bit integer mixing that vectorises, one byte of mask per element.
#include "backend/cpu/isa/dropout_kernels.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

inline __attribute__((always_inline)) uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

void forward(size_t n, uint32_t k0, uint32_t k1, uint32_t threshold, float scale, const float* x, float* y,
             uint8_t* keep) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    const uint32_t hash = mix(mix(static_cast<uint32_t>(i) ^ k0) + k1);
    keep[i] = hash >= threshold ? 1 : 0;
    y[i] = x[i] * (hash >= threshold ? scale : 0.0F);
  }
}

void apply(size_t n, float scale, const uint8_t* keep, const float* x, float* y) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * (keep[i] != 0 ? scale : 0.0F);
}

}  // namespace

const DropoutKernels dropout_kernels = {forward, apply};

}  // namespace lockstep::LOCKSTEP_ISA
