// Dropout: 32-bit integer mixing that vectorises, one byte of mask per element.
#include "backend/cpu/isa/dropout_kernels.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

inline __attribute__((always_inline)) uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

void forward(size_t n, uint64_t key, uint32_t threshold, float scale, const float* x, float* y, uint8_t* keep) {
  constexpr size_t kChunk = size_t{1} << 32;  // elements of one pair of subkeys
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const uint64_t subkeys = splitmix64(key + (begin >> 32));
    const auto k0 = static_cast<uint32_t>(subkeys), k1 = static_cast<uint32_t>(subkeys >> 32);
    const size_t count = n - begin < kChunk ? n - begin : kChunk;
    const float* from = x + begin;
    float* to = y + begin;
    uint8_t* mask = keep + begin;
#pragma omp simd
    for (size_t i = 0; i < count; ++i) {
      const uint32_t hash = mix(mix(static_cast<uint32_t>(i) ^ k0) + k1);
      mask[i] = hash >= threshold ? 1 : 0;
      to[i] = from[i] * (hash >= threshold ? scale : 0.0F);
    }
  }
}

void apply(size_t n, float scale, const uint8_t* keep, const float* x, float* y) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * (keep[i] != 0 ? scale : 0.0F);
}

}  // namespace

const DropoutKernels dropout_kernels = {forward, apply};

}  // namespace lockstep::LOCKSTEP_ISA
