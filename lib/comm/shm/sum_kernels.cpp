#include "comm/shm/sum_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "comm/sum_tree.h"
#include "core/cpu_features.h"

namespace lockstep {
namespace {

constexpr int widest = 8;       // arrays whose tree is evaluated in registers
constexpr size_t block = 1024;  // floats: wider trees are made of blocks that stay in the first-level cache
// Another core's lines come sooner when they are asked for in several places at once: prefetchers follow each of them,
// and none beyond its page. Measured with two ranks: a tenth less time at 1 MB, a sixth at 100 MB.
constexpr int places = 8;    // over all arrays together
constexpr size_t run = 128;  // floats at one place before the next one's turn; what is loaded waits in registers

// One body per loop, inlined into a function per instruction set and number of arrays. No iteration touches what
// another one does, whatever the compiler must think of so many pointers: hence ivdep.
template <int first, int last>
[[gnu::always_inline]] inline float tree(const float* const* arrays, size_t i) {
  if constexpr (last - first == 1) {
    return arrays[first][i];
  } else {
    constexpr int middle = first + left_leaves(last - first);
    return tree<first, middle>(arrays, i) + tree<middle, last>(arrays, i);
  }
}

template <int ranks>
[[gnu::always_inline]] inline void one_body(float* out, const float* const* arrays, size_t at, size_t n) {
  const float* from[ranks];
  for (int r = 0; r < ranks; ++r) from[r] = arrays[r] + at;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) out[i] = tree<0, ranks>(from, i);
}

template <int ranks>
[[gnu::always_inline]] inline void all_run(float* const* arrays, size_t at) {
  float sum[run];
  one_body<ranks>(sum, arrays, at, run);
  for (int r = 0; r < ranks; ++r) {
    float* to = arrays[r] + at;
#pragma GCC ivdep
    for (size_t i = 0; i < run; ++i) to[i] = sum[i];
  }
}

// Runs of each of `streams` equal parts. An odd number of runs: equal addresses within pages would evict each other.
constexpr size_t runs_of_stream(size_t n, size_t streams) {
  const size_t runs = n / (streams * run);
  return runs == 0 ? 0 : (runs - 1) | 1;
}

template <int ranks>
[[gnu::always_inline]] inline void all_body(float* const* arrays, size_t n) {
  constexpr size_t streams = places / ranks;
  float* all[ranks];
  for (int r = 0; r < ranks; ++r) all[r] = arrays[r];
  const size_t length = runs_of_stream(n, streams) * run;
  for (size_t at = 0; at < length; at += run)
    for (size_t stream = 0; stream < streams; ++stream) all_run<ranks>(all, stream * length + at);
#pragma GCC ivdep
  for (size_t i = streams * length; i < n; ++i) {
    const float sum = tree<0, ranks>(all, i);
    for (int r = 0; r < ranks; ++r) all[r][i] = sum;
  }
}

struct Kernels {  // by number of arrays
  std::array<void (*)(float* out, const float* const* arrays, size_t at, size_t n), widest + 1> one;
  std::array<void (*)(float* const* arrays, size_t n), widest + 1> all;
};
static_assert(places >= widest, "every array is in at least one place");

template <int ranks>
void one_generic(float* out, const float* const* arrays, size_t at, size_t n) {
  one_body<ranks>(out, arrays, at, n);
}
template <int ranks>
void all_generic(float* const* arrays, size_t n) {
  all_body<ranks>(arrays, n);
}
template <int... n>
constexpr Kernels make_generic(std::integer_sequence<int, n...>) {
  return {{nullptr, one_generic<n + 1>...}, {nullptr, all_generic<n + 1>...}};
}

constexpr auto up_to_widest = std::make_integer_sequence<int, widest>();
const Kernels generic = make_generic(up_to_widest);

#if defined(__x86_64__)
template <int ranks>
[[gnu::target("avx2")]] void one_avx2(float* out, const float* const* arrays, size_t at, size_t n) {
  one_body<ranks>(out, arrays, at, n);
}
template <int ranks>
[[gnu::target("avx2")]] void all_avx2(float* const* arrays, size_t n) {
  all_body<ranks>(arrays, n);
}
template <int... n>
constexpr Kernels make_avx2(std::integer_sequence<int, n...>) {
  return {{nullptr, one_avx2<n + 1>...}, {nullptr, all_avx2<n + 1>...}};
}

template <int ranks>
[[gnu::target("avx512f,prefer-vector-width=512")]] void one_avx512(float* out, const float* const* arrays, size_t at,
                                                                   size_t n) {
  one_body<ranks>(out, arrays, at, n);
}
template <int ranks>
[[gnu::target("avx512f,prefer-vector-width=512")]] void all_avx512(float* const* arrays, size_t n) {
  all_body<ranks>(arrays, n);
}
template <int... n>
constexpr Kernels make_avx512(std::integer_sequence<int, n...>) {
  return {{nullptr, one_avx512<n + 1>...}, {nullptr, all_avx512<n + 1>...}};
}

const Kernels avx2 = make_avx2(up_to_widest);
const Kernels avx512 = make_avx512(up_to_widest);
#else
const Kernels& avx2 = generic;
const Kernels& avx512 = generic;
#endif

const Kernels& kernels() {
  static const Kernels& chosen = select_isa(generic, avx2, avx512);
  return chosen;
}

// out[0, n) = the tree of arrays[0 .. ranks) at [at, at + n), n <= block. Left branches are powers of two, so `widest`
// neighbours are a branch.
void sum_block(float* out, const float* const* arrays, int ranks, size_t at, size_t n) {
  if (ranks <= widest) return kernels().one[ranks](out, arrays, at, n);
  const int left = left_leaves(ranks);
  alignas(64) float right[block];
  sum_block(out, arrays, left, at, n);
  sum_block(right, arrays + left, ranks - left, at, n);
  add_into(out, right, n);
}

}  // namespace

void add_into(float* values, const float* other, size_t count) {
  const float* arrays[] = {values, other};
  kernels().one[2](values, arrays, 0, count);
}

void sum_into_all(float* const* arrays, int ranks, size_t count) {
  if (ranks <= widest) return kernels().all[ranks](arrays, count);
  alignas(64) float sum[block];
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    sum_block(sum, arrays, ranks, at, n);
    for (int r = 0; r < ranks; ++r) std::memcpy(arrays[r] + at, sum, n * sizeof(float));
  }
}

void sum_into(float* out, const float* const* arrays, int ranks, size_t count) {
  if (ranks <= widest) return kernels().one[ranks](out, arrays, 0, count);
  alignas(64) float sum[block];  // `out` may be an array that is still to be read
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    sum_block(sum, arrays, ranks, at, n);
    std::memcpy(out + at, sum, n * sizeof(float));
  }
}

void combine_into(double* out, const double* const* arrays, int ranks, size_t count, ReduceOp op) {
  const auto combine = [op](double left, double right) {
    if (op == ReduceOp::sum) return left + right;
    if (std::isnan(left) || std::isnan(right)) return std::isnan(left) ? left : right;
    return op == ReduceOp::min ? std::min(left, right) : std::max(left, right);
  };
  for (size_t i = 0; i < count; ++i)
    out[i] = tree_reduce(
        0, ranks, [&](int r) { return arrays[r][i]; }, combine);
}

}  // namespace lockstep
