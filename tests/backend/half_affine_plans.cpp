// Convolutions and fully connected layers on bf16 and fp16 activations, in every way to compute them: with the numbers
// as stored (rounded to 16 bits) the fp32 results are right to fp32 rounding; against unrounded numbers every pass is
// within the type's precision.
#include <dnnl.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "backend/affine_runner.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "core/error.h"
#include "support/oracle.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Way {
  DType type;
  Bf16Products products;
  double relative;  // rel-L2 error of a pass
};

// The library computes bf16 from AVX-512 on, by emulation where need be: slowly, but it is its code that runs. Below,
// these ways fall back to conversions.
bool library_bf16() { return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core; }

std::vector<Way> ways() {
  if (!library_bf16()) MESSAGE("skipped: oneDNN's bf16 needs AVX-512");
  return {{DType::bf16, Bf16Products::converted, 4e-3},
          {DType::f16, Bf16Products::detect, 6e-4},
          {DType::bf16, Bf16Products::avx512, 4e-3},
          {DType::bf16, Bf16Products::amx, 4e-3}};
}

using Values = oracle::Values;

double relative_error(std::span<const float> found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(found[i]) - expected[i];
    error += difference * difference, norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

std::vector<float> rounded(DType type, const std::vector<float>& x) {
  std::vector<float> result(x.size());
  half_kernels(type).round(x.size(), x.data(), result.data());
  return result;
}

struct Data {
  std::vector<float> x, w, b, dy;
  Data as_stored(DType type) const { return {rounded(type, x), rounded(type, w), b, rounded(type, dy)}; }
};

struct Expected {
  Values y;
  oracle::Gradients gradients;
};

// `exact`: from the unrounded numbers; `stored`: from the rounded ones.
void check(const AffineResult& r, const Expected& exact, const Expected& stored, const Way& way) {
  CHECK_EQ(r.broken, "");
  CHECK(relative_error(r.y, exact.y) < way.relative);
  CHECK(relative_error(r.dw, exact.gradients.dweight) < way.relative);
  CHECK(relative_error(r.db, exact.gradients.dbias) < way.relative);
  CHECK(relative_error(r.y, stored.y) < way.relative / 2);
  CHECK(relative_error(r.dw, stored.gradients.dweight) < 2e-6);  // fp32: nothing is rounded to 16 bits
  CHECK(relative_error(r.db, stored.gradients.dbias) < 2e-6);
  if (r.dx.empty()) return;
  CHECK(relative_error(r.dx, exact.gradients.dx) < way.relative);
  CHECK(relative_error(r.dx, stored.gradients.dx) < way.relative / 2);
}

struct ConvCase {
  oracle::Conv2dGeometry g;
  int64_t block;
};
const std::vector<ConvCase> kConvolutions = {
    {{.batch = 2, .channels = 1, .height = 12, .width = 11, .out_channels = 32, .kernel = {3, 3}}, 1},
    {{.batch = 2, .channels = 32, .height = 10, .width = 9, .out_channels = 64, .kernel = {3, 3}}, 16},
    {{.batch = 2, .channels = 32, .height = 10, .width = 9, .out_channels = 64, .kernel = {3, 3}}, 32},
    {{.batch = 2, .channels = 32, .height = 10, .width = 9, .out_channels = 64, .kernel = {3, 3}}, 1},
    {{.batch = 3, .channels = 5, .height = 9, .width = 7, .out_channels = 7, .kernel = {3, 3}, .padding = {1, 1}}, 1},
    {{.batch = 2, .channels = 16, .height = 9, .width = 9, .out_channels = 24, .kernel = {3, 3}, .stride = {2, 2}}, 16},
    {{.batch = 2, .channels = 6, .height = 6, .width = 6, .out_channels = 4, .kernel = {3, 3}, .groups = 2}, 1},
};

Expected expected(const oracle::Conv2dGeometry& g, const Data& d) {
  const auto x = oracle::widen(d.x), w = oracle::widen(d.w), b = oracle::widen(d.b), dy = oracle::widen(d.dy);
  return {oracle::conv2d(g, x, w, b), oracle::conv2d_backward(g, x, w, dy)};
}

}  // namespace

TEST_CASE("convolutions on 16 bits are within the type's precision in every layout") {
  for (const Way& way : ways()) {
    for (const ConvCase& c : kConvolutions) {
      const auto& g = c.g;
      const auto size = [](int64_t n) { return static_cast<size_t>(n); };
      const Data d{oracle::random_floats(size(g.batch * g.channels * g.height * g.width), 1),
                   oracle::random_floats(size(g.out_channels * g.channels / g.groups * g.kernel[0] * g.kernel[1]), 2),
                   oracle::random_floats(size(g.out_channels), 3),
                   oracle::random_floats(size(g.batch * g.out_channels * g.out_height() * g.out_width()), 4)};
      const Conv2dSpec spec{.input = {.shape = Shape{g.batch, g.channels, g.height, g.width},
                                      .channel_block = c.block,
                                      .dtype = way.type},
                            .out_channels = g.out_channels,
                            .kernel = g.kernel,
                            .stride = g.stride,
                            .padding = g.padding,
                            .groups = g.groups,
                            .weight_format = nullptr};
      CAPTURE(name(way.type));
      CAPTURE(static_cast<int>(way.products));
      CAPTURE(g.channels);
      CAPTURE(c.block);
      const auto plan = make_cpu_conv2d(spec, {.bf16 = way.products});
      CHECK(plan->output().dtype == way.type);
      if (way.products == Bf16Products::amx && c.block == 32 && library_bf16())
        CHECK(plan->output().channel_block == g.out_channels);
      const AffineRun run{.input = spec.input, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy};
      check(run_affine(*plan, run), expected(g, d), expected(g, d.as_stored(way.type)), way);
    }
  }
}

TEST_CASE("fully connected layers on 16 bits are within the type's precision") {
  struct Case {
    int64_t batch, in, out;
  };
  for (const Way& way : ways()) {
    for (const Case& c : {Case{64, 300, 128}, Case{33, 1024, 200}, Case{5, 30, 20}}) {
      const auto size = [](int64_t n) { return static_cast<size_t>(n); };
      const Data d{oracle::random_floats(size(c.batch * c.in), 1), oracle::random_floats(size(c.in * c.out), 2),
                   oracle::random_floats(size(c.out), 3), oracle::random_floats(size(c.batch * c.out), 4)};
      const auto of = [&](const Data& data) {
        const auto x = oracle::widen(data.x), w = oracle::widen(data.w), dy = oracle::widen(data.dy);
        return Expected{oracle::linear(c.batch, c.in, c.out, x, w, oracle::widen(data.b)),
                        oracle::linear_backward(c.batch, c.in, c.out, x, w, dy)};
      };
      CAPTURE(name(way.type));
      CAPTURE(static_cast<int>(way.products));
      CAPTURE(c.in);
      const LinearSpec spec{.input = {.shape = Shape{c.batch, c.in}, .dtype = way.type}, .out_features = c.out};
      const auto plan = make_cpu_linear(spec, {.bf16 = way.products});
      const AffineRun run{.input = spec.input, .x = d.x, .w = d.w, .b = d.b, .dy = d.dy};
      check(run_affine(*plan, run), of(d), of(d.as_stored(way.type)), way);
    }
  }
}

TEST_CASE("copies of weights are made by take_weights and by nothing else") {
  for (const Way& way : ways()) {
    const LinearSpec spec{.input = {.shape = Shape{64, 300}, .dtype = way.type}, .out_features = 128, .bias = false};
    const auto plan = make_cpu_linear(spec, {.bf16 = way.products});
    const Buffer x = Buffer::host(spec.input.bytes()), y = Buffer::host(plan->output().bytes()),
                 workspace = Buffer::host(plan->workspace_bytes()), w = Buffer::host(300 * 128 * sizeof(float));
    const TensorDesc plain{.shape = spec.input.shape};
    reorder_channels(plain, oracle::random_floats(64 * 300, 1).data(), spec.input, x.data());
    std::ranges::fill(w.as<float>(), 1.0F);
    const auto run = [&] {
      plan->forward(x.data(), w.as<float>().data(), nullptr, y.data(), workspace.data());
      std::vector<float> wide(64 * 128);
      reorder_channels(plan->output(), y.data(), {.shape = Shape{64, 128}}, wide.data());
      return wide[0];
    };
    plan->take_weights(w.as<float>().data(), workspace.data());
    const float ones = run();
    std::ranges::fill(w.as<float>(), 2.0F);
    CHECK(run() == ones);
    plan->take_weights(w.as<float>().data(), workspace.data());
    CHECK(run() == 2 * ones);
  }
}

TEST_CASE("fp16 activations overflow to infinity where fp32 sums do not") {
  const LinearSpec spec{.input = {.shape = Shape{1, 40}, .dtype = DType::f16}, .out_features = 2, .bias = false};
  const auto plan = make_cpu_linear(spec, {});
  std::vector<float> x(40, 60.0F), w(80, 1.0F), dy(2, 1.0F);
  for (size_t i = 0; i < 40; ++i) w[i] = 30.0F;  // 40 * 60 * 30 = 72000 against 2400
  const AffineResult r = run_affine(*plan, {.input = spec.input, .bias = false, .x = x, .w = w, .b = {}, .dy = dy});
  CHECK(std::isinf(r.y[0]));
  CHECK(r.y[1] == 2400.0F);
  CHECK(r.dw[0] == 60.0F);
}
