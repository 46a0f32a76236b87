// Fully connected plans against plain loops in double: own kernels on every instruction set, oneDNN, blocked inputs.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "backend/affine_runner.h"
#include "backend/cpu/cpu_plans.h"
#include "core/error.h"
#include "support/golden.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Data {
  std::vector<float> x, w, b, dy;
};

Data make_data(int64_t rows, int64_t in, int64_t out) {
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  return {oracle::random_floats(size(rows * in), 1), oracle::random_floats(size(out * in), 2),
          oracle::random_floats(size(out), 3), oracle::random_floats(size(rows * out), 4)};
}

TensorDesc input_of(Shape shape, int64_t block = 1) {
  return {.shape = shape, .channel_block = block, .dtype = DType::f32};
}

LinearSpec spec_of(const TensorDesc& input, int64_t out) {
  return {.input = input, .out_features = out, .weight_format = nullptr};
}

// Rounding grows with the square root of the number of products in one sum.
double tolerance(int64_t products) { return 1e-6 * std::sqrt(static_cast<double>(products)); }

void check_against_oracle(const AffineResult& r, const Data& d, int64_t rows, int64_t in, int64_t out) {
  const auto x = oracle::widen(d.x), w = oracle::widen(d.w), b = oracle::widen(d.b), dy = oracle::widen(d.dy);
  const oracle::Gradients expected = oracle::linear_backward(rows, in, out, x, w, dy);
  CAPTURE(rows);
  CAPTURE(in);
  CAPTURE(out);
  CHECK_EQ(r.broken, "");
  CHECK_EQ(differs(r.y, oracle::narrow(oracle::linear(rows, in, out, x, w, b)), 1e-5, tolerance(in)), "");
  CHECK_EQ(differs(r.dw, oracle::narrow(expected.dweight), 1e-5, tolerance(rows)), "");
  CHECK_EQ(differs(r.db, oracle::narrow(expected.dbias), 1e-5, tolerance(rows)), "");
  if (!r.dx.empty()) CHECK_EQ(differs(r.dx, oracle::narrow(expected.dx), 1e-5, tolerance(out)), "");
}

void check_plan(const TensorDesc& input, int64_t out, const CpuOptions& options) {
  const int64_t rows = input.shape[0], in = input.shape.without_front().numel();
  const Data d = make_data(rows, in, out);
  auto plan = make_cpu_linear(spec_of(input, out), options);
  check_against_oracle(run_affine(*plan, {.input = input, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy}), d, rows, in, out);
}

}  // namespace

TEST_CASE("own kernels agree with plain loops for tiny linear layers") {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 17, 32})
    for (const int64_t in : {1, 2, 5, 16, 30})
      for (const int64_t out : {1, 2, 7, 8, 15, 16, 17, 20, 31, 32, 33, 40})
        check_plan(input_of(Shape{rows, in}), out, {});
}

TEST_CASE("oneDNN agrees with plain loops for linear layers") {
  for (const int64_t rows : {1, 5, 64})
    for (const int64_t in : {3, 128, 300})
      for (const int64_t out : {1, 10, 64}) check_plan(input_of(Shape{rows, in}), out, {.small_kernels = false});
}

TEST_CASE("a flattened image keeps its layout") {
  for (const bool small : {false, true})
    for (const int64_t block : {1, 8, 16})
      for (const int64_t rows : {1, 3})
        check_plan(input_of(Shape{rows, 16, 3, 2}, block), 10, {.small_kernels = small});
}

TEST_CASE("weights stored for one batch size and layout serve every other one") {
  for (const bool small : {false, true})
    for (const int64_t stored_block : {1, 8, 16})
      for (const int64_t block : {0, 1, 8, 16})  // 0: a flat input
        for (const int64_t rows : {1, 5}) {
          const auto stored = make_cpu_linear(spec_of(input_of(Shape{64, 16, 3, 2}, stored_block), 10), {});
          const TensorDesc input = block == 0 ? input_of(Shape{rows, 96}) : input_of(Shape{rows, 16, 3, 2}, block);
          LinearSpec spec = spec_of(input, 10);
          spec.stored = true;
          spec.weight_format = stored->weight_format();
          const Data d = make_data(rows, 96, 10);
          auto plan = make_cpu_linear(spec, {.small_kernels = small});
          check_against_oracle(run_affine(*plan, {.input = input, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy}), d, rows,
                               96, 10);
        }
}

TEST_CASE("linear layers add to their gradients when they accumulate") {
  for (const bool small : {false, true}) {
    const TensorDesc input = input_of(Shape{6, 18});
    const Data d = make_data(6, 18, 21);
    auto plan = make_cpu_linear(spec_of(input, 21), {.small_kernels = small});
    AffineRun run{.input = input, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy};
    const AffineResult once = run_affine(*plan, run);
    run.accumulate = true;
    const AffineResult twice = run_affine(*plan, run);
    CHECK_EQ(twice.broken, "");
    std::vector<float> dw = once.dw, db = once.db;
    for (float& value : dw) value *= 2;
    for (float& value : db) value *= 2;
    CHECK_EQ(differs(twice.dw, dw, 1e-6, 1e-6), "");
    CHECK_EQ(differs(twice.db, db, 1e-6, 1e-6), "");
  }
}

TEST_CASE("linear layers without bias and with a fused ReLU") {
  for (const bool small : {false, true}) {
    const TensorDesc input = input_of(Shape{9, 12});
    const Data d = make_data(9, 12, 19);
    LinearSpec spec = spec_of(input, 19);
    spec.bias = false;
    spec.activation = Activation::relu;
    auto plan = make_cpu_linear(spec, {.small_kernels = small});
    const AffineResult r = run_affine(*plan, {.input = input, .bias = false, .x = d.x, .w = d.w, .b = {}, .dy = d.dy});
    auto y = oracle::linear(9, 12, 19, oracle::widen(d.x), oracle::widen(d.w), {});
    for (double& value : y) value = value > 0 ? value : 0;
    CHECK_EQ(r.broken, "");
    CHECK_EQ(differs(r.y, oracle::narrow(y), 1e-5, 1e-5), "");
  }
}

TEST_CASE("linear refuses what does not fit") {
  CHECK_THROWS_AS(make_cpu_linear(spec_of(input_of(Shape{2, 3, 4}), 5), {}), Error);
  CHECK_THROWS_AS(make_cpu_linear(spec_of(input_of(Shape{2, 3}), 0), {}), Error);
  CHECK_THROWS_AS(make_cpu_linear(spec_of(input_of(Shape{2, 12, 2, 2}, 8), 5), {}), Error);
  LinearSpec spec = spec_of(input_of(Shape{2, 3}), 5);
  spec.stored = true;
  spec.weight_format = make_cpu_linear(spec_of(input_of(Shape{2, 4}), 5), {})->weight_format();
  CHECK_THROWS_AS(make_cpu_linear(spec, {}), Error);
}
