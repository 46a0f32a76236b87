#include "backend/cpu/bf16_rate.h"

#include <algorithm>
#include <chrono>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {

#if defined(__x86_64__)
namespace {

constexpr int chains = 12, turns = 1000;  // independent chains hide the latency of an instruction

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The compiler may keep the sums in registers, but must make each of them anew.
template <class Sum>
[[gnu::always_inline]] inline void keep(Sum& sum) {
  asm volatile("" : "+v"(sum));
}

[[gnu::target("avx512f")]] void multiply_add() {
  __m512 sums[chains];
  const __m512 factor = _mm512_set1_ps(0.5f);
  for (auto& sum : sums) sum = factor;
  for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_fmadd_ps(factor, factor, sum), keep(sum);
  }
}

[[gnu::target("avx512f,avx512bf16")]] void dot_product() {
  __m512 sums[chains];
  const __m512 half = _mm512_set1_ps(0.5f);
  const __m512bh factor = _mm512_cvtne2ps_pbh(half, half);
  for (auto& sum : sums) sum = half;
  for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor), keep(sum);
  }
}

// Both in turns, the fastest run of each: whatever else the core does only makes a run longer. A dot product is two
// multiply-adds for every one of fp32.
double measured_gain() {
  double plain = std::numeric_limits<double>::infinity(), dot = plain;
  for (int run = 0; run < 8; ++run) {
    plain = std::min(plain, seconds_of(multiply_add));
    dot = std::min(dot, seconds_of(dot_product));
  }
  return 2 * plain / dot;
}

}  // namespace

double bf16_dot_product_gain() {
  static const double gain = measured_gain();
  return gain;
}
#else
double bf16_dot_product_gain() { return 0; }
#endif

}  // namespace lockstep
