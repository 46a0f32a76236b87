// An operation of a backend, run on the CPU and on the GPU: the same numbers go in, and what comes out differs by
// rounding at most.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "backend/factory.h"
#include "gpu/device.h"

namespace lockstep::test {

inline const Shape kImage{3, 8, 7, 6};
constexpr size_t n = 3 * 8 * 7 * 6;

struct Operation {
  const char* name;
  double tolerance;  // of a result beside the largest of its array
  std::function<std::vector<Floats>(Device&)> run;
};

// The same arithmetic in the same order; sums in fp32 of another order; the last bit of a 16-bit result.
constexpr double kSame = 0, kSums = 2e-6, kBf16 = 1.6e-2, kF16 = 2e-3;
inline double tolerance_of(DType type) { return type == DType::f32 ? kSums : type == DType::bf16 ? kBf16 : kF16; }

inline std::string difference_of(const Floats& a, const Floats& b, double tolerance) {
  if (a.size() != b.size()) return "sizes differ";
  double largest = 0;
  for (const float value : b) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    if (!(std::abs(x - y) <= tolerance * largest))
      return "element " + std::to_string(i) + ": " + std::to_string(x) + " and " + std::to_string(y);
  }
  return "";
}

inline void compare_all(const std::vector<Floats>& found, const std::vector<Floats>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK_EQ(difference_of(found[i], expected[i], tolerance), "");
  }
}

inline void compare(const Operation& operation) {
  CAPTURE(operation.name);
  const auto cpu = make_backend("cpu", {.winograd = false});
  const auto gpu = make_backend("cuda", {}, {.index = 0});
  Device on_cpu(*cpu), on_gpu(*gpu);
  const std::vector<Floats> expected = operation.run(on_cpu), found = operation.run(on_gpu);
  REQUIRE_FALSE(expected.empty());
  compare_all(found, expected, operation.tolerance);
}

inline TensorDesc desc_of(const Shape& shape, DType type = DType::f32) { return {.shape = shape, .dtype = type}; }

}  // namespace lockstep::test
