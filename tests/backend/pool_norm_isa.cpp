// The kernel tables of all instruction sets this CPU has, called directly, give one result.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "backend/cpu/isa/dropout_kernels.h"
#include "backend/cpu/isa/norm_kernels.h"
#include "backend/cpu/isa/pointwise_kernels.h"
#include "backend/cpu/isa/pool_kernels.h"
#include "backend/pool_geometry.h"
#include "core/cpu_features.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;
using oracle::random_floats;

namespace {

// The tables besides the generic one that this CPU can run; says what it leaves out.
template <class Table>
std::vector<const Table*> other_tables(const Table& avx2, const Table& avx512) {
  std::vector<const Table*> tables;
  if (detect_isa() != Isa::generic) tables.push_back(&avx2);
  if (detect_isa() == Isa::avx512) tables.push_back(&avx512);
  if (tables.size() < 2) MESSAGE("skipped: this CPU runs only ", name(detect_isa()));
  return tables;
}

}  // namespace

TEST_CASE("pooling kernels: all instruction sets agree to the bit") {
  for (const int64_t block : {1, 8, 16}) {
    Pool2dSpec spec{.input = {.shape = Shape{2, 32, 9, 7}, .channel_block = block}};
    const PoolAxis rows = pool_axis(spec, 0), cols = pool_axis(spec, 1);
    const PoolWindows w{64 / block,
                        block,
                        9,
                        7,
                        4,
                        3,
                        rows.begin.data(),
                        rows.end.data(),
                        cols.begin.data(),
                        cols.end.data(),
                        rows.divisor.data(),
                        cols.divisor.data()};
    std::vector<float> x = random_floats(64 * 63, 1);
    for (size_t i = 0; i < x.size(); i += 41) x[i] = NAN;
    const std::vector<float> dy = random_floats(64 * 12, 2);
    const auto run = [&](const PoolKernels& k) {
      std::vector<float> all;
      std::vector<float> y(dy.size()), dx(x.size(), NAN);
      std::vector<uint8_t> small(dy.size());
      std::vector<int32_t> large(dy.size());
      const auto keep = [&] {
        all.insert(all.end(), y.begin(), y.end());
        all.insert(all.end(), dx.begin(), dx.end());
      };
      k.max_forward_2x2(w, x.data(), y.data(), small.data());
      k.max_backward_2x2(w, dy.data(), y.data(), small.data(), dx.data());
      keep();
      k.max_forward(w, x.data(), y.data(), large.data());
      k.max_backward(w, dy.data(), nullptr, large.data(), dx.data());
      keep();
      k.average_forward(w, x.data(), y.data());
      k.average_backward(w, dy.data(), dx.data());
      keep();
      return all;
    };
    const std::vector<float> expected = run(isa_generic::pool_kernels[0]);
    for (const PoolKernels* k : other_tables(isa_avx2::pool_kernels[0], isa_avx512::pool_kernels[0]))
      CHECK_EQ(differs(run(*k), expected, 0, 0), "");
  }
}

TEST_CASE("norm kernels: all instruction sets agree") {
  for (const ChannelLayout& l : {ChannelLayout{3, 32, 20, 1}, ChannelLayout{3, 4, 20, 8}, ChannelLayout{3, 2, 20, 16},
                                 ChannelLayout{60, 1, 1, 32}}) {
    const std::vector<float> x = random_floats(3 * 32 * 20, 1), dy = random_floats(x.size(), 2),
                             a = random_floats(32, 3);
    const auto run = [&](const NormKernels& k) {
      std::vector<double> sums(4 * 32);
      std::vector<float> y(x.size()), dx(x.size());
      k.sums(l, x.data(), sums.data());
      k.centered_squares(l, x.data(), a.data(), sums.data() + 32);
      k.gradient_sums(l, x.data(), dy.data(), a.data(), sums.data() + 64, sums.data() + 96);
      k.normalise(l, x.data(), a.data(), a.data(), a.data(), y.data());
      k.gradient(l, x.data(), dy.data(), a.data(), a.data(), a.data(), a.data(), dx.data());
      std::vector<float> all(sums.begin(), sums.end());
      all.insert(all.end(), y.begin(), y.end());
      all.insert(all.end(), dx.begin(), dx.end());
      return all;
    };
    const std::vector<float> expected = run(isa_generic::norm_kernels);
    for (const NormKernels* k : other_tables(isa_avx2::norm_kernels, isa_avx512::norm_kernels))
      CHECK_EQ(differs(run(*k), expected, 1e-6, 1e-7), "");
  }
}

TEST_CASE("pointwise kernels: all instruction sets agree to the bit") {
  const size_t n = 1003;  // with a tail
  std::vector<float> x = random_floats(n, 1, -100, 95), y = random_floats(n, 2);
  x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = -0.0F, y[4] = NAN;
  const auto run = [&](const PointwiseKernels& k) {
    std::vector<float> all(7 * n);
    k.fill(n, 2.5F, all.data());
    k.add(n, x.data(), y.data(), &all[n]);
    k.relu(n, x.data(), &all[2 * n]);
    k.relu_mask(n, x.data(), y.data(), &all[3 * n]);
    k.leaky_relu(n, 0.1F, x.data(), &all[4 * n]);
    k.leaky_relu_backward(n, 0.1F, x.data(), y.data(), &all[5 * n]);
    k.exp(n, x.data(), &all[6 * n]);
    return all;
  };
  const std::vector<float> expected = run(isa_generic::pointwise_kernels);
  for (const PointwiseKernels* k : other_tables(isa_avx2::pointwise_kernels, isa_avx512::pointwise_kernels))
    CHECK_EQ(lockstep::test::differs_bits(run(*k), expected), "");
}

TEST_CASE("dropout kernels: all instruction sets draw the same mask") {
  const size_t n = 1003;
  const std::vector<float> x = random_floats(n, 1);
  const auto run = [&](const DropoutKernels& k, std::vector<uint8_t>& keep) {
    std::vector<float> y(n), dx(n);
    keep.assign(n, 9);
    k.forward(n, 0x1234567U, 0xfedcba98U, 0x40000000U, 1.5F, x.data(), y.data(), keep.data());
    k.apply(n, 1.5F, keep.data(), x.data(), dx.data());
    CHECK_EQ(differs(y, dx, 0, 0), "");
    return y;
  };
  std::vector<uint8_t> keep, other;
  const std::vector<float> expected = run(isa_generic::dropout_kernels[0], keep);
  for (const DropoutKernels* k : other_tables(isa_avx2::dropout_kernels[0], isa_avx512::dropout_kernels[0])) {
    CHECK_EQ(differs(run(*k, other), expected, 0, 0), "");
    CHECK_EQ(std::memcmp(keep.data(), other.data(), n), 0);
  }
}
