// The float vector of the instruction set a kernel file is being compiled for, with partial loads and stores. Only for
// files under isa/; everything lives in their namespace.
#pragma once

#include <cstdint>

#if defined(__AVX512F__)

#include <immintrin.h>

namespace lockstep::LOCKSTEP_ISA {
using Vec = __m512;
constexpr int64_t kLanes = 16, kRegisters = 32;
using Lanes = __mmask16;                                                                   // which lanes take part
static inline Lanes first_lanes(int64_t n) { return static_cast<Lanes>((1U << n) - 1U); }  // 0 <= n <= kLanes
static inline Vec load(const float* p, Lanes lanes) { return _mm512_maskz_loadu_ps(lanes, p); }
static inline void store(float* p, Lanes lanes, Vec v) { _mm512_mask_storeu_ps(p, lanes, v); }
static inline Vec broadcast(float x) { return _mm512_set1_ps(x); }
static inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// NaN stays NaN. (The unmasked intrinsic makes GCC 12 warn of an uninitialised value.)
static inline Vec relu(Vec x) { return _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), x); }
}  // namespace lockstep::LOCKSTEP_ISA

#elif defined(__AVX2__)

#include <immintrin.h>

namespace lockstep::LOCKSTEP_ISA {
using Vec = __m256;
constexpr int64_t kLanes = 8, kRegisters = 16;
using Lanes = __m256i;
static inline Lanes first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline Vec load(const float* p, Lanes lanes) { return _mm256_maskload_ps(p, lanes); }
static inline void store(float* p, Lanes lanes, Vec v) { _mm256_maskstore_ps(p, lanes, v); }
static inline Vec broadcast(float x) { return _mm256_set1_ps(x); }
static inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
static inline Vec relu(Vec x) { return _mm256_max_ps(_mm256_setzero_ps(), x); }
}  // namespace lockstep::LOCKSTEP_ISA

#else

namespace lockstep::LOCKSTEP_ISA {
typedef float Vec __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4, kRegisters = 16;
using Lanes = int64_t;  // their number
static inline Lanes first_lanes(int64_t n) { return n; }
static inline Vec load(const float* p, Lanes lanes) {
  if (lanes == kLanes) {
    Vec v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  Vec v{};
  for (int64_t i = 0; i < lanes; ++i) v[i] = p[i];
  return v;
}
static inline void store(float* p, Lanes lanes, Vec v) {
  if (lanes == kLanes) {
    __builtin_memcpy(p, &v, sizeof v);
    return;
  }
  for (int64_t i = 0; i < lanes; ++i) p[i] = v[i];
}
static inline Vec broadcast(float x) { return Vec{x, x, x, x}; }
static inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }  // no such instruction on these machines
static inline Vec relu(Vec x) { return x < 0 ? Vec{} : x; }
}  // namespace lockstep::LOCKSTEP_ISA

#endif
