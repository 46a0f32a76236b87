// Pooling plans against the loops of the oracle, in every layout.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;

namespace {

struct Result {
  Shape shape;
  std::vector<float> y, dx;
};

// Runs the plan in the spec's layout, takes and returns canonical values; dy is a fixed pattern.
Result run(const Pool2dSpec& spec, const std::vector<float>& x, const std::vector<float>& dy) {
  const auto plan = make_cpu_pool2d(spec);
  const TensorDesc out = plan->output();
  const TensorDesc plain_in{.shape = spec.input.shape}, plain_out{.shape = out.shape};
  std::vector<float> stored_x(x.size()), stored_y(dy.size(), NAN), stored_dy(dy.size()), stored_dx(x.size(), NAN);
  std::vector<unsigned char> saved(plan->saved_bytes());
  reorder_channels(plain_in, x.data(), spec.input, stored_x.data());
  reorder_channels(plain_out, dy.data(), out, stored_dy.data());
  plan->forward(stored_x.data(), stored_y.data(), saved.data());
  plan->backward(stored_dy.data(), stored_y.data(), stored_dx.data(), saved.data());
  Result result{out.shape, std::vector<float>(dy.size()), std::vector<float>(x.size())};
  reorder_channels(out, stored_y.data(), plain_out, result.y.data());
  reorder_channels(spec.input, stored_dx.data(), plain_in, result.dx.data());
  return result;
}

void check_against_oracle(Pool2dSpec spec, uint32_t seed) {
  const auto count = static_cast<size_t>(spec.input.shape.numel());
  std::vector<float> x = oracle::random_floats(count, seed);
  for (float& value : x) value = std::round(value * 4) / 4;  // many ties
  const auto [height, width] = oracle::pooled_shape(spec);
  const Shape out{spec.input.shape[0], spec.input.shape[1], height, width};
  const std::vector<float> dy = oracle::random_floats(static_cast<size_t>(out.numel()), seed + 1);
  const auto y = oracle::narrow(oracle::pool2d(spec, oracle::widen(x)));
  const auto dx = oracle::narrow(oracle::pool2d_backward(spec, oracle::widen(x), oracle::widen(dy)));
  for (int64_t block : {1, 4, 8, 16}) {
    CAPTURE(block);
    spec.input.channel_block = block;
    const Result result = run(spec, x, dy);
    REQUIRE_EQ(result.shape.str(), out.str());
    CHECK_EQ(differs(result.y, y, 1e-6, 1e-6), "");
    CHECK_EQ(differs(result.dx, dx, 1e-6, 1e-6), "");
  }
}

constexpr Pool2dSpec::Kind kKinds[] = {Pool2dSpec::Kind::max, Pool2dSpec::Kind::average,
                                       Pool2dSpec::Kind::average_exclude_padding};

}  // namespace

TEST_CASE("pooling: every window geometry equals the oracle in every layout") {
  struct Geometry {
    std::array<int64_t, 2> kernel, stride, padding;
  };
  const Geometry geometries[] = {{{2, 2}, {2, 2}, {0, 0}}, {{3, 3}, {2, 2}, {1, 1}}, {{2, 2}, {1, 1}, {0, 0}},
                                 {{3, 2}, {1, 2}, {1, 0}}, {{3, 3}, {3, 2}, {0, 1}}, {{4, 5}, {5, 4}, {2, 2}},
                                 {{1, 1}, {2, 3}, {0, 0}}};
  uint32_t seed = 1;
  for (const auto kind : kKinds)
    for (const Geometry& g : geometries)
      for (const bool ceil_mode : {false, true})
        for (const Shape& shape : {Shape{2, 16, 6, 8}, Shape{1, 32, 7, 5}, Shape{1, 16, 9, 6}}) {
          CAPTURE(shape.str());
          CAPTURE(ceil_mode);
          Pool2dSpec spec{
              .input = {.shape = shape}, .kind = kind, .kernel = g.kernel, .stride = g.stride, .padding = g.padding};
          spec.ceil_mode = ceil_mode;
          check_against_oracle(spec, seed += 2);
        }
}

TEST_CASE("max pooling: every dilation equals the oracle in every layout") {
  struct Geometry {
    std::array<int64_t, 2> kernel, stride, padding, dilation;
  };
  const Geometry geometries[] = {{{2, 2}, {2, 2}, {0, 0}, {2, 2}},
                                 {{3, 3}, {2, 2}, {1, 1}, {2, 1}},
                                 {{2, 3}, {1, 1}, {1, 1}, {3, 2}},
                                 {{3, 2}, {3, 4}, {1, 0}, {1, 3}},
                                 {{1, 1}, {2, 3}, {0, 0}, {9, 9}}};
  uint32_t seed = 300;
  for (const Geometry& g : geometries)
    for (const bool ceil_mode : {false, true})
      for (const Shape& shape : {Shape{2, 16, 6, 8}, Shape{1, 16, 9, 7}}) {
        CAPTURE(shape.str());
        CAPTURE(ceil_mode);
        check_against_oracle({.input = {.shape = shape},
                              .kernel = g.kernel,
                              .stride = g.stride,
                              .padding = g.padding,
                              .dilation = g.dilation,
                              .ceil_mode = ceil_mode},
                             seed += 2);
      }
}

// torch.nn.functional.max_pool2d (2.13) of x[r][c] = (7 r + 5 c) % 11 - 5 + r / 4, with a gradient of 1, 2, 3, ...
TEST_CASE("max pooling: dilated windows have the numbers of PyTorch") {
  std::vector<float> x;
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 7; ++c)
      x.push_back(static_cast<float>((r * 7 + c * 5) % 11 - 5) + 0.25F * static_cast<float>(r));
  struct Case {
    Pool2dSpec spec;
    std::vector<float> y;
    std::vector<std::pair<size_t, float>> dx;  // what is not zero
  };
  const Pool2dSpec image{.input = {.shape = Shape{1, 1, 6, 7}}};
  Case cases[] = {{image,
                   {-3.75, 2.25, 5.25, 1.25, 5.25, -0.25, 5.75, 5.25, 4.75, 5.25, 3.25, 5.75, 3.25, 6.25, 2.25},
                   {{7, 2}, {8, 1}, {9, 4}, {12, 26}, {21, 19}, {22, 6}, {23, 9}, {36, 24}, {38, 15}, {41, 14}}},
                  {image, {5.75, 2.75, 5.75, 6.25, 5.75, 6.25}, {{21, 9}, {27, 2}, {41, 10}}},
                  {image, {0, 5, -2, -0.25, 4.75, -2.25}, {{1, 1}, {2, 2}, {5, 3}, {22, 4}, {23, 5}, {26, 6}}}};
  const auto set = [](Pool2dSpec& spec, std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                      std::array<int64_t, 2> padding, std::array<int64_t, 2> dilation, bool ceil_mode) {
    spec.kernel = kernel, spec.stride = stride, spec.padding = padding, spec.dilation = dilation;
    spec.ceil_mode = ceil_mode;
  };
  set(cases[0].spec, {2, 3}, {2, 1}, {1, 1}, {2, 2}, false);
  set(cases[1].spec, {3, 2}, {2, 3}, {1, 0}, {2, 3}, true);
  set(cases[2].spec, {2, 2}, {3, 3}, {0, 1}, {3, 2}, true);
  for (const Case& each : cases) {
    std::vector<float> dy(each.y.size()), dx(x.size());
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i + 1);
    for (const auto& [at, gradient] : each.dx) dx[at] = gradient;
    const Result result = run(each.spec, x, dy);
    CHECK_EQ(differs(result.y, each.y, 0, 0), "");
    CHECK_EQ(differs(result.dx, dx, 0, 0), "");
  }
  x[16] = std::numeric_limits<float>::quiet_NaN();  // row 2 column 2
  Pool2dSpec spec = image;
  set(spec, {2, 2}, {1, 1}, {0, 0}, {2, 2}, false);
  const Result result = run(spec, x, std::vector<float>(20, 1.0F));
  for (size_t i = 0; i < 20; ++i) CHECK_EQ(std::isnan(result.y[i]), i == 0 || i == 2 || i == 10 || i == 12);
  CHECK_EQ(result.y[5], 5.75F);
}

TEST_CASE("adaptive pooling: every output size equals the oracle in every layout") {
  uint32_t seed = 100;
  for (const auto kind : {Pool2dSpec::Kind::max, Pool2dSpec::Kind::average})
    for (const std::array<int64_t, 2> out : {std::array<int64_t, 2>{1, 1}, {2, 3}, {5, 4}, {7, 5}, {9, 8}}) {
      Pool2dSpec spec{.input = {.shape = Shape{2, 16, 7, 5}}, .kind = kind, .adaptive = true, .out_size = out};
      check_against_oracle(spec, seed += 2);
    }
}

TEST_CASE("max pooling: the last NaN of a window wins as in PyTorch and minus infinity has a place") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const int64_t stride : {2, 1}) {  // the 2x2 kernel and the general one
    Pool2dSpec spec{.input = {.shape = Shape{1, 2, 2, 2}}, .stride = {stride, stride}};
    const Result result = run(spec, {1, nan, nan, 5, -inf, -inf, -inf, -inf}, {3, 4});
    CHECK(std::isnan(result.y[0]));
    CHECK_EQ(result.y[1], -inf);
    CHECK_EQ(differs(result.dx, std::vector<float>{0, 0, 3, 0, 4, 0, 0, 0}, 0, 0), "");
  }
}

TEST_CASE("max pooling: mask_relu lets gradients pass only where the maximum is positive") {
  for (const int64_t block : {1, 8, 16})
    for (const int64_t stride : {2, 3}) {
      Pool2dSpec spec{.input = {.shape = Shape{2, 16, 6, 6}, .channel_block = block}, .stride = {stride, stride}};
      std::vector<float> x = oracle::random_floats(2 * 16 * 36, 7);
      for (float& value : x) value = value < 0.5F ? 0.0F : value;  // a ReLU's output with windows of zeros
      const auto [height, width] = oracle::pooled_shape(spec);
      std::vector<float> dy = oracle::random_floats(static_cast<size_t>(2 * 16 * height * width), 8);
      const Result plain = run(spec, x, dy);
      spec.mask_relu = true;
      const Result masked = run(spec, x, dy);
      std::vector<float> expected = plain.dx;
      for (size_t i = 0; i < x.size(); ++i)
        if (!(x[i] > 0)) expected[i] = 0;
      CHECK_EQ(differs(masked.dx, expected, 0, 0), "");
      CHECK_NE(differs(masked.dx, plain.dx, 0, 0), "");
    }
}

TEST_CASE("pooling: windows that do not fit are errors that say why") {
  const Shape shape{1, 1, 4, 4};
  CHECK_THROWS_WITH_AS(make_cpu_pool2d({.input = {.shape = shape}, .kernel = {5, 5}}),
                       "pooling: kernel 5 is larger than the input of 4 padded by 0", Error);
  CHECK_THROWS_WITH_AS(make_cpu_pool2d({.input = {.shape = shape}, .padding = {2, 2}}),
                       "pooling: padding 2 must be at most half of kernel 2", Error);
  CHECK_THROWS_AS(make_cpu_pool2d({.input = {.shape = shape}, .stride = {0, 1}}), Error);
  CHECK_THROWS_AS(make_cpu_pool2d({.input = {.shape = shape}, .dilation = {0, 1}}), Error);
  CHECK_THROWS_AS(make_cpu_pool2d({.input = {.shape = shape}, .kind = Pool2dSpec::Kind::average, .dilation = {2, 1}}),
                  Error);
  CHECK_THROWS_AS(make_cpu_pool2d({.input = {.shape = Shape{1, 4}}}), Error);
}

TEST_CASE("max pooling: inference saves nothing and gives the same output") {
  Pool2dSpec spec{.input = {.shape = Shape{1, 16, 6, 6}, .channel_block = 16}};
  const std::vector<float> x = oracle::random_floats(16 * 36, 9);
  const auto training = make_cpu_pool2d(spec);
  spec.phase = Phase::inference;
  const auto inference = make_cpu_pool2d(spec);
  CHECK_EQ(inference->saved_bytes(), 0);
  std::vector<float> a(16 * 9), b(16 * 9);
  std::vector<unsigned char> saved(training->saved_bytes());
  training->forward(x.data(), a.data(), saved.data());
  inference->forward(x.data(), b.data(), nullptr);
  CHECK_EQ(differs(a, b, 0, 0), "");
}
