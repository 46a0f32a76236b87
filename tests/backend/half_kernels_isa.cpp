// Kernels on 16-bit storage: what they compute is the fp32 kernel's result on the same numbers, rounded once, and all
// instruction sets agree to the bit.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/isa/dropout_kernels.h"
#include "backend/cpu/isa/half_kernels.h"
#include "backend/cpu/isa/pool_kernels.h"
#include "backend/pool_geometry.h"
#include "core/cpu_features.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Of one instruction set.
struct Tables {
  const HalfKernels* half;
  const PoolKernels* pool;
  const DropoutKernels* dropout;
};

std::vector<Tables> all_tables() {
  std::vector<Tables> all{{isa_generic::half_kernels, isa_generic::pool_kernels, isa_generic::dropout_kernels}};
  if (detect_isa() != Isa::generic)
    all.push_back({isa_avx2::half_kernels, isa_avx2::pool_kernels, isa_avx2::dropout_kernels});
  if (detect_isa() == Isa::avx512)
    all.push_back({isa_avx512::half_kernels, isa_avx512::pool_kernels, isa_avx512::dropout_kernels});
  if (all.size() < 3) MESSAGE("skipped: this CPU runs only ", name(detect_isa()));
  return all;
}

using Bits = std::vector<uint16_t>;

Bits narrowed(const HalfKernels& k, const std::vector<float>& x) {
  Bits bits(x.size());
  k.narrow(x.size(), x.data(), bits.data());
  return bits;
}

std::vector<float> widened(const HalfKernels& k, const Bits& bits) {
  std::vector<float> x(bits.size());
  k.widen(bits.size(), bits.data(), x.data());
  return x;
}

void append(Bits& all, const Bits& more) { all.insert(all.end(), more.begin(), more.end()); }

std::vector<float> some_floats(size_t n, uint64_t seed) {
  std::vector<float> x = oracle::random_floats(n, seed);
  x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = -0.0F, x[4] = 1e5F, x[5] = 3e-6F, x[6] = 3.4e38F;
  return x;
}

}  // namespace

TEST_CASE("elementwise kernels on 16 bits: rounded once and the same bits on all instruction sets") {
  const size_t n = 1003;  // with a tail
  const std::vector<float> a = some_floats(n, 1), b = oracle::random_floats(n, 2);
  for (size_t type = 0; type < 2; ++type) {
    CAPTURE(type);
    std::vector<Bits> results;
    for (const Tables& tables : all_tables()) {
      const HalfKernels& k = tables.half[type];
      const Bits x = narrowed(k, a), y = narrowed(k, b);
      const std::vector<float> wide_x = widened(k, x), wide_y = widened(k, y);
      std::vector<float> rounded(n), sum(n), relu(n), mask(n);
      k.round(n, a.data(), rounded.data());
      CHECK_EQ(differs_bits(rounded, wide_x), "");
      Bits out(n), all = x;
      for (size_t i = 0; i < n; ++i) {
        sum[i] = wide_x[i] + wide_y[i];
        relu[i] = wide_x[i] <= 0 ? 0.0F : wide_x[i];
        mask[i] = wide_x[i] > 0 ? wide_y[i] : 0.0F;
      }
      k.add(n, x.data(), y.data(), out.data());
      CHECK(out == narrowed(k, sum));
      append(all, out);
      k.relu(n, x.data(), out.data());
      CHECK(out == narrowed(k, relu));
      append(all, out);
      k.relu_mask(n, x.data(), y.data(), out.data());
      CHECK(out == narrowed(k, mask));
      append(all, out);
      results.push_back(all);
    }
    for (const Bits& result : results) CHECK(result == results[0]);
  }
}

TEST_CASE("dropout on 16 bits: the mask of fp32, rounded once, on all instruction sets") {
  const size_t n = 1003;
  const std::vector<float> a = some_floats(n, 1);
  for (size_t type = 0; type < 2; ++type) {
    for (const Tables& tables : all_tables()) {
      const HalfKernels& k = tables.half[type];
      const Bits x = narrowed(k, a);
      const std::vector<float> wide = widened(k, x);
      Bits y(n), again(n);
      std::vector<float> expected(n);
      std::vector<uint8_t> keep(n, 9), expected_keep(n, 8);
      tables.dropout[0].forward(n, 1, 2, 0x40000000U, 1.5F, wide.data(), expected.data(), expected_keep.data());
      tables.dropout[type + 1].forward(n, 1, 2, 0x40000000U, 1.5F, x.data(), y.data(), keep.data());
      tables.dropout[type + 1].apply(n, 1.5F, keep.data(), x.data(), again.data());
      CHECK(keep == expected_keep);
      CHECK(y == narrowed(k, expected));
      CHECK(y == again);
    }
  }
}

TEST_CASE("pooling on 16 bits: the fp32 kernels' results in every layout on all instruction sets") {
  for (const int64_t block : {1, 8, 16, 32}) {
    Pool2dSpec spec{.input = {.shape = Shape{2, 32, 9, 7}, .channel_block = block}};
    const PoolAxis rows = pool_axis(spec, 0), cols = pool_axis(spec, 1);
    const PoolWindows w{.planes = 2 * 32 / block,
                        .block = block,
                        .height = 9,
                        .width = 7,
                        .out_height = std::ssize(rows.begin),
                        .out_width = std::ssize(cols.begin),
                        .row_begin = rows.begin.data(),
                        .row_end = rows.end.data(),
                        .col_begin = cols.begin.data(),
                        .col_end = cols.end.data(),
                        .row_divisor = rows.divisor.data(),
                        .col_divisor = cols.divisor.data()};
    const size_t in = 2 * 32 * 9 * 7, out = static_cast<size_t>(2 * 32 * w.out_height * w.out_width);
    const std::vector<float> a = some_floats(in, 1), d = oracle::random_floats(out, 2);
    for (size_t type = 0; type < 2; ++type) {
      for (const Tables& tables : all_tables()) {
        CAPTURE(block);
        CAPTURE(type);
        const HalfKernels& k = tables.half[type];
        const PoolKernels &pool = tables.pool[type + 1], &wide_pool = tables.pool[0];
        const Bits x = narrowed(k, a), dy = narrowed(k, d);
        const std::vector<float> wide_x = widened(k, x), wide_dy = widened(k, dy);
        Bits y(out), dx(in, 0x7fff);
        std::vector<float> wide_y(out), wide_dx(in, NAN);
        std::vector<uint8_t> small(out), wide_small(out);
        std::vector<int32_t> large(out), wide_large(out);
        pool.max_forward_2x2(w, x.data(), y.data(), small.data());
        wide_pool.max_forward_2x2(w, wide_x.data(), wide_y.data(), wide_small.data());
        CHECK(small == wide_small);
        CHECK(y == narrowed(k, wide_y));
        pool.max_backward_2x2(w, dy.data(), y.data(), small.data(), dx.data());
        wide_pool.max_backward_2x2(w, wide_dy.data(), wide_y.data(), wide_small.data(), wide_dx.data());
        CHECK(dx == narrowed(k, wide_dx));
        pool.max_forward(w, x.data(), y.data(), large.data());
        wide_pool.max_forward(w, wide_x.data(), wide_y.data(), wide_large.data());
        CHECK(large == wide_large);
        CHECK(y == narrowed(k, wide_y));
        pool.max_backward(w, dy.data(), nullptr, large.data(), dx.data());
        wide_pool.max_backward(w, wide_dy.data(), nullptr, wide_large.data(), wide_dx.data());
        CHECK(dx == narrowed(k, wide_dx));  // windows don't overlap: nothing is summed
        pool.average_forward(w, x.data(), y.data());
        wide_pool.average_forward(w, wide_x.data(), wide_y.data());
        CHECK(y == narrowed(k, wide_y));
        pool.average_backward(w, dy.data(), dx.data());
        wide_pool.average_backward(w, wide_dy.data(), wide_dx.data());
        CHECK(dx == narrowed(k, wide_dx));
      }
    }
  }
}
