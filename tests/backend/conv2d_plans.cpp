// Convolution plans against plain loops in double: shapes, layouts, algorithms, accumulation, stored weights.
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

struct Case {
  std::string name;
  oracle::Conv2dGeometry g;
  int64_t block = 1;
  bool bias = true;
};

Conv2dSpec spec_of(const Case& c) {
  return {.input = {.shape = Shape{c.g.batch, c.g.channels, c.g.height, c.g.width},
                    .channel_block = c.block,
                    .dtype = DType::f32},
          .out_channels = c.g.out_channels,
          .kernel = c.g.kernel,
          .stride = c.g.stride,
          .padding = c.g.padding,
          .dilation = c.g.dilation,
          .groups = c.g.groups,
          .bias = c.bias,
          .weight_format = nullptr};
}

struct Data {
  std::vector<float> x, w, b, dy;
};

Data make_data(const Case& c) {
  const auto& g = c.g;
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  Data d;
  d.x = oracle::random_floats(size(g.batch * g.channels * g.height * g.width), 1);
  d.w = oracle::random_floats(size(g.out_channels * (g.channels / g.groups) * g.kernel[0] * g.kernel[1]), 2);
  if (c.bias) d.b = oracle::random_floats(size(g.out_channels), 3);
  d.dy = oracle::random_floats(size(g.batch * g.out_channels * g.out_height() * g.out_width()), 4);
  return d;
}

// Rounding grows with the square root of the number of products in one sum.
double tolerance(int64_t products, double unit) { return unit * std::sqrt(static_cast<double>(products)); }

void check_against_oracle(const Case& c, const AffineResult& r, const Data& d, double unit = 1e-6) {
  const auto x = oracle::widen(d.x), w = oracle::widen(d.w), b = oracle::widen(d.b), dy = oracle::widen(d.dy);
  const auto& g = c.g;
  const oracle::Gradients expected = oracle::conv2d_backward(g, x, w, dy);
  const int64_t taps = g.kernel[0] * g.kernel[1];
  const int64_t pixels = g.batch * g.out_height() * g.out_width();
  CAPTURE(c.name);
  CHECK_EQ(r.broken, "");
  CHECK_EQ(
      differs(r.y, oracle::narrow(oracle::conv2d(g, x, w, b)), 1e-5, tolerance(taps * g.channels / g.groups, unit)),
      "");
  CHECK_EQ(differs(r.dw, oracle::narrow(expected.dweight), 1e-5, tolerance(pixels, unit)), "");
  if (c.bias) CHECK_EQ(differs(r.db, oracle::narrow(expected.dbias), 1e-5, tolerance(pixels, unit)), "");
  if (!r.dx.empty())
    CHECK_EQ(differs(r.dx, oracle::narrow(expected.dx), 1e-5, tolerance(taps * g.out_channels / g.groups, unit)), "");
}

AffineRun run_of(const Case& c, const Data& d) {
  return {.input = spec_of(c).input, .bias = c.bias, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy};
}

const std::vector<Case> kCases = {
    {"first layer, one channel",
     {.batch = 2, .channels = 1, .height = 9, .width = 8, .out_channels = 32, .kernel = {3, 3}}},
    {"three channels",
     {.batch = 2, .channels = 3, .height = 8, .width = 8, .out_channels = 16, .kernel = {3, 3}, .padding = {1, 1}}},
    {"blocked by 16", {.batch = 2, .channels = 16, .height = 7, .width = 6, .out_channels = 32, .kernel = {3, 3}}, 16},
    {"blocked input given plain",
     {.batch = 2, .channels = 16, .height = 7, .width = 6, .out_channels = 32, .kernel = {3, 3}}},
    {"blocked by 8",
     {.batch = 1, .channels = 8, .height = 6, .width = 6, .out_channels = 24, .kernel = {3, 3}, .padding = {1, 1}},
     8},
    {"24 channels on 40", {.batch = 2, .channels = 24, .height = 5, .width = 5, .out_channels = 40, .kernel = {3, 3}}},
    {"odd channels", {.batch = 3, .channels = 5, .height = 9, .width = 7, .out_channels = 7, .kernel = {3, 3}}},
    {"LeNet second layer",
     {.batch = 2, .channels = 6, .height = 12, .width = 12, .out_channels = 16, .kernel = {5, 5}}},
    {"padding differs by axis",
     {.batch = 2, .channels = 4, .height = 6, .width = 5, .out_channels = 8, .kernel = {3, 5}, .padding = {0, 2}}},
    {"stride",
     {.batch = 2,
      .channels = 16,
      .height = 11,
      .width = 9,
      .out_channels = 16,
      .kernel = {3, 3},
      .stride = {2, 3},
      .padding = {1, 1}},
     16},
    {"dilation",
     {.batch = 2,
      .channels = 16,
      .height = 11,
      .width = 12,
      .out_channels = 16,
      .kernel = {3, 3},
      .padding = {2, 1},
      .dilation = {2, 3}},
     16},
    {"pointwise", {.batch = 2, .channels = 32, .height = 5, .width = 6, .out_channels = 48, .kernel = {1, 1}}, 16},
    {"pointwise with stride",
     {.batch = 2, .channels = 32, .height = 6, .width = 6, .out_channels = 16, .kernel = {1, 1}, .stride = {2, 2}},
     16},
    {"two groups",
     {.batch = 2, .channels = 6, .height = 6, .width = 6, .out_channels = 4, .kernel = {3, 3}, .groups = 2}},
    {"blocked groups",
     {.batch = 1,
      .channels = 32,
      .height = 6,
      .width = 6,
      .out_channels = 32,
      .kernel = {3, 3},
      .padding = {1, 1},
      .groups = 2},
     16},
    {"depthwise",
     {.batch = 2,
      .channels = 16,
      .height = 7,
      .width = 7,
      .out_channels = 16,
      .kernel = {3, 3},
      .padding = {1, 1},
      .groups = 16},
     16},
    {"depthwise of 5",
     {.batch = 2, .channels = 5, .height = 7, .width = 7, .out_channels = 10, .kernel = {3, 3}, .groups = 5}},
    {"kernel covers all",
     {.batch = 3, .channels = 16, .height = 4, .width = 4, .out_channels = 10, .kernel = {4, 4}},
     16},
    {"batch of one", {.batch = 1, .channels = 32, .height = 8, .width = 8, .out_channels = 64, .kernel = {3, 3}}, 16},
    {"no bias", {.batch = 2, .channels = 16, .height = 6, .width = 6, .out_channels = 16, .kernel = {3, 3}}, 16, false},
};

}  // namespace

TEST_CASE("convolution agrees with plain loops in every shape") {
  for (const Case& c : kCases) {
    const Data d = make_data(c);
    auto plan = make_cpu_conv2d(spec_of(c), {.winograd = false});
    check_against_oracle(c, run_affine(*plan, run_of(c, d)), d);
  }
}

// F(4x4, 3x3) multiplies by constants up to 8 and subtracts: its rounding is about ten times that of a direct sum.
TEST_CASE("convolution by Winograd agrees with plain loops") {
  for (const Case& c : std::vector<Case>{
           {"valid", {.batch = 2, .channels = 32, .height = 26, .width = 26, .out_channels = 64, .kernel = {3, 3}}, 16},
           {"same",
            {.batch = 6,
            .channels = 64,
            .height = 14,
            .width = 14,
            .out_channels = 64,
            .kernel = {3, 3},
            .padding = {1, 1}},
            16},
           {"odd size",
            {.batch = 12, .channels = 32, .height = 13, .width = 11, .out_channels = 32, .kernel = {3, 3}},
            16}}) {
    const Data d = make_data(c);
    auto plan = make_cpu_conv2d(spec_of(c), {.winograd = true});
    check_against_oracle(c, run_affine(*plan, run_of(c, d)), d, 1e-5);
  }
}

TEST_CASE("convolution adds to the weight gradient when it accumulates") {
  for (const Case& c : {kCases[0], kCases[2], kCases[6], kCases[15]}) {
    const Data d = make_data(c);
    auto plan = make_cpu_conv2d(spec_of(c), {.winograd = false});
    AffineRun run = run_of(c, d);
    const AffineResult once = run_affine(*plan, run);
    run.accumulate = true;
    const AffineResult twice = run_affine(*plan, run);
    CAPTURE(c.name);
    CHECK_EQ(twice.broken, "");
    for (size_t i = 0; i < once.dw.size(); ++i) REQUIRE_EQ(twice.dw[i], 2 * once.dw[i]);
    for (size_t i = 0; i < once.db.size(); ++i) REQUIRE_EQ(twice.db[i], 2 * once.db[i]);
  }
}

TEST_CASE("convolution fuses the ReLU into its output") {
  for (const Case& c : {kCases[0], kCases[2], kCases[6]}) {
    const Data d = make_data(c);
    Conv2dSpec spec = spec_of(c);
    auto plain = make_cpu_conv2d(spec, {.winograd = false});
    spec.activation = Activation::relu;
    auto fused = make_cpu_conv2d(spec, {.winograd = false});
    std::vector<float> expected = run_affine(*plain, run_of(c, d)).y;
    for (float& y : expected) y = y > 0 ? y : 0;
    CAPTURE(c.name);
    CHECK_EQ(differs(run_affine(*fused, run_of(c, d)).y, expected, 0, 1e-6), "");
  }
}

TEST_CASE("weights stored by one batch size serve every other one") {
  for (const bool winograd : {false, true})
    for (const Case& first : {kCases[0], kCases[2], kCases[6], kCases[7], kCases[11], kCases[15], kCases[18]}) {
      Case large = first;
      large.g.batch = 16;
      auto stored = make_cpu_conv2d(spec_of(large), {.winograd = winograd});
      for (const int64_t batch : {1, 3})
        for (const Phase phase : {Phase::training, Phase::inference}) {
          Case c = first;
          c.g.batch = batch;
          const Data d = make_data(c);
          Conv2dSpec spec = spec_of(c);
          spec.stored = true;
          spec.weight_format = stored->weight_format();
          spec.phase = phase;
          auto plan = make_cpu_conv2d(spec, {.winograd = winograd});
          AffineRun run = run_of(c, d);
          run.backward = phase == Phase::training;
          const AffineResult result = run_affine(*plan, run);
          CAPTURE(c.name);
          const auto y = oracle::conv2d(c.g, oracle::widen(d.x), oracle::widen(d.w), oracle::widen(d.b));
          CHECK_EQ(result.broken, "");
          CHECK_EQ(differs(result.y, oracle::narrow(y), 1e-5, winograd ? 2e-4 : 2e-5), "");
          if (run.backward) check_against_oracle(c, result, d, winograd ? 1e-5 : 1e-6);
        }
    }
}

TEST_CASE("a convolution without input gradient plans no backward_data") {
  const Case c = kCases[0];
  Conv2dSpec spec = spec_of(c);
  spec.input_gradient = false;
  const Data d = make_data(c);
  auto plan = make_cpu_conv2d(spec, {});
  AffineRun run = run_of(c, d);
  run.input_gradient = false;
  check_against_oracle(c, run_affine(*plan, run), d);
}

TEST_CASE("convolution refuses what does not fit") {
  Case c = kCases[6];
  c.g.kernel = {10, 3};
  CHECK_THROWS_AS(make_cpu_conv2d(spec_of(c), {}), Error);
  c = kCases[6];
  c.g.groups = 2;
  CHECK_THROWS_AS(make_cpu_conv2d(spec_of(c), {}), Error);
}
