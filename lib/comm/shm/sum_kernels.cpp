#include "comm/shm/sum_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/cpu_features.h"

namespace lockstep {
namespace {

// One body per loop, inlined into a function per instruction set.
[[gnu::always_inline]] inline void add_body(float* __restrict a, const float* __restrict b, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] += b[i];
}

[[gnu::always_inline]] inline void pair_body(float* __restrict a, float* __restrict b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

struct Kernels {
  void (*add)(float*, const float*, size_t);
  void (*pair)(float*, float*, size_t);
};

void add_generic(float* a, const float* b, size_t n) { add_body(a, b, n); }
void pair_generic(float* a, float* b, size_t n) { pair_body(a, b, n); }
const Kernels generic = {add_generic, pair_generic};

#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_avx2(float* a, const float* b, size_t n) { add_body(a, b, n); }
[[gnu::target("avx2")]] void pair_avx2(float* a, float* b, size_t n) { pair_body(a, b, n); }
const Kernels avx2 = {add_avx2, pair_avx2};

[[gnu::target("avx512f,prefer-vector-width=512")]] void add_avx512(float* a, const float* b, size_t n) {
  add_body(a, b, n);
}
[[gnu::target("avx512f,prefer-vector-width=512")]] void pair_avx512(float* a, float* b, size_t n) {
  pair_body(a, b, n);
}
const Kernels avx512 = {add_avx512, pair_avx512};
#else
const Kernels& avx2 = generic;
const Kernels& avx512 = generic;
#endif

const Kernels& kernels() {
  static const Kernels& chosen = select_isa(generic, avx2, avx512);
  return chosen;
}

constexpr size_t block = 1024;  // floats: the running sum of a block stays in the first-level cache

}  // namespace

void add_into(float* values, const float* other, size_t count) { kernels().add(values, other, count); }

void sum_into_all(float* const* arrays, int ranks, size_t count) {
  if (ranks == 2) return kernels().pair(arrays[0], arrays[1], count);
  alignas(64) float sum[block];
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    std::memcpy(sum, arrays[0] + at, n * sizeof(float));
    for (int r = 1; r < ranks; ++r) kernels().add(sum, arrays[r] + at, n);
    for (int r = 0; r < ranks; ++r) std::memcpy(arrays[r] + at, sum, n * sizeof(float));
  }
}

void sum_into(float* out, const float* const* arrays, int ranks, size_t count) {
  alignas(64) float sum[block];
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    std::memcpy(sum, arrays[0] + at, n * sizeof(float));
    for (int r = 1; r < ranks; ++r) kernels().add(sum, arrays[r] + at, n);
    std::memcpy(out + at, sum, n * sizeof(float));
  }
}

void combine(double* values, const double* other, size_t count, ReduceOp op) {
  for (size_t i = 0; i < count; ++i) {
    if (op == ReduceOp::sum) {
      values[i] += other[i];
    } else if (std::isnan(other[i])) {
      values[i] = other[i];
    } else if (!std::isnan(values[i])) {
      values[i] = op == ReduceOp::min ? std::min(values[i], other[i]) : std::max(values[i], other[i]);
    }
  }
}

}  // namespace lockstep
