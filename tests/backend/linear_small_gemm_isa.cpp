// The small matrix product on every instruction set this machine has, against plain loops, for all edges of its tiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/isa/small_gemm_kernels.h"
#include "core/cpu_features.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;

namespace {

std::vector<std::pair<std::string, const SmallGemmKernels*>> tables() {
  std::vector<std::pair<std::string, const SmallGemmKernels*>> all{{"generic", &isa_generic::small_gemm_kernels}};
  if (detect_isa() != Isa::generic) all.emplace_back("avx2", &isa_avx2::small_gemm_kernels);
  if (detect_isa() == Isa::avx512) all.emplace_back("avx512", &isa_avx512::small_gemm_kernels);
  return all;
}

constexpr float kGuard = 77.5F;

}  // namespace

TEST_CASE("small matrix product agrees with plain loops on every instruction set") {
  for (const auto& [isa, kernels] : tables()) {
    CAPTURE(isa);
    for (int64_t rows = 1; rows <= 40; rows += rows < 18 ? 1 : 11)
      for (int64_t cols = 1; cols <= 40; ++cols)
        for (const int64_t depth : {1, 2, 13, 40}) {
          const auto a = oracle::random_floats(static_cast<size_t>(rows * depth), 1);
          const auto b = oracle::random_floats(static_cast<size_t>(depth * cols), 2);
          const auto bias = oracle::random_floats(static_cast<size_t>(cols), 3);
          std::vector<float> c(static_cast<size_t>(rows * cols) + 32, kGuard), expected = c;
          kernels->gemm({.rows = rows,
                         .cols = cols,
                         .depth = depth,
                         .a = a.data(),
                         .a_row = depth,
                         .a_depth = 1,
                         .b = b.data(),
                         .b_row = cols,
                         .bias = bias.data(),
                         .relu = true,
                         .c = c.data(),
                         .c_row = cols});
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < cols; ++j) {
              double sum = bias[static_cast<size_t>(j)];
              for (int64_t k = 0; k < depth; ++k)
                sum += double{a[static_cast<size_t>(i * depth + k)]} * double{b[static_cast<size_t>(k * cols + j)]};
              expected[static_cast<size_t>(i * cols + j)] = static_cast<float>(std::max(sum, 0.0));
            }
          REQUIRE_EQ(test::differs(c, expected, 1e-6, 3e-6), "");  // the guard behind the matrix included
        }
  }
}

TEST_CASE("small matrix product reads a transposed factor and adds to its result") {
  for (const auto& [isa, kernels] : tables()) {
    CAPTURE(isa);
    const int64_t rows = 11, cols = 21, depth = 6;
    const auto a = oracle::random_floats(static_cast<size_t>(rows * depth), 1);  // [depth][rows]
    const auto b = oracle::random_floats(static_cast<size_t>(depth * cols), 2);
    const auto start = oracle::random_floats(static_cast<size_t>(rows * cols), 3);
    std::vector<float> c = start, expected = start;
    kernels->gemm({.rows = rows,
                   .cols = cols,
                   .depth = depth,
                   .a = a.data(),
                   .a_row = 1,
                   .a_depth = rows,
                   .b = b.data(),
                   .b_row = cols,
                   .accumulate = true,
                   .c = c.data(),
                   .c_row = cols});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t k = 0; k < depth; ++k)
          expected[static_cast<size_t>(i * cols + j)] +=
              a[static_cast<size_t>(k * rows + i)] * b[static_cast<size_t>(k * cols + j)];
    CHECK_EQ(test::differs(c, expected, 1e-6, 2e-6), "");
  }
}

TEST_CASE("the sum runs in order from zero and what it is added to comes last") {
  for (const auto& [isa, kernels] : tables()) {
    CAPTURE(isa);
    const bool fused = isa != "generic";
    const int64_t rows = 9, cols = 37, depth = 23;
    const auto a = oracle::random_floats(static_cast<size_t>(rows * depth), 1);
    const auto b = oracle::random_floats(static_cast<size_t>(depth * cols), 2);
    const auto bias = oracle::random_floats(static_cast<size_t>(cols), 3);
    for (const bool accumulate : {false, true}) {
      std::vector<float> c = oracle::random_floats(static_cast<size_t>(rows * cols), 4), expected = c;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const float left = a[static_cast<size_t>(i * depth + k)], right = b[static_cast<size_t>(k * cols + j)];
            sum = fused ? std::fma(left, right, sum) : left * right + sum;
          }
          float& value = expected[static_cast<size_t>(i * cols + j)];
          value = (accumulate ? value : bias[static_cast<size_t>(j)]) + sum;
        }
      kernels->gemm({.rows = rows,
                     .cols = cols,
                     .depth = depth,
                     .a = a.data(),
                     .a_row = depth,
                     .b = b.data(),
                     .b_row = cols,
                     .bias = accumulate ? nullptr : bias.data(),
                     .accumulate = accumulate,
                     .c = c.data(),
                     .c_row = cols});
      CHECK_EQ(test::differs_bits(c, expected), "");
    }
  }
}

TEST_CASE("the fused ReLU lets NaN through") {
  for (const auto& [isa, kernels] : tables()) {
    CAPTURE(isa);
    const std::vector<float> a{1}, b{std::numeric_limits<float>::quiet_NaN(), -1, 2};
    std::vector<float> c(3);
    kernels->gemm({.rows = 1,
                   .cols = 3,
                   .depth = 1,
                   .a = a.data(),
                   .a_row = 1,
                   .a_depth = 1,
                   .b = b.data(),
                   .b_row = 3,
                   .relu = true,
                   .c = c.data(),
                   .c_row = 3});
    CHECK(std::isnan(c[0]));
    CHECK_EQ(c[1], 0);
    CHECK_EQ(c[2], 2);
  }
}

TEST_CASE("small transposition on every instruction set") {
  for (const auto& [isa, kernels] : tables()) {
    CAPTURE(isa);
    for (const int64_t rows : {1, 2, 16, 30})
      for (const int64_t cols : {1, 7, 20, 33}) {
        const auto from = oracle::random_floats(static_cast<size_t>(rows * cols), 1);
        std::vector<float> to(from.size()), expected(from.size());
        kernels->transpose(rows, cols, from.data(), to.data());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c)
            expected[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * cols + c)];
        CHECK_EQ(to, expected);
      }
  }
}
