// Activation and softmax plans against their definitions in double.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;
using oracle::narrow;
using oracle::random_floats;
using oracle::widen;

TEST_CASE("activations: values and derivatives equal the oracle") {
  for (const Activation kind : {Activation::relu, Activation::leaky_relu, Activation::gelu, Activation::gelu_tanh,
                                Activation::tanh, Activation::sigmoid}) {
    CAPTURE(static_cast<int>(kind));
    const std::vector<float> x = random_floats(501, 1, -4, 4), dy = random_floats(501, 2);
    const auto plan = make_cpu_activation({.count = 501, .kind = kind, .negative_slope = 0.2});
    std::vector<float> y(501), dx(501), y_expected, dx_expected;
    plan->forward(x.data(), y.data());
    plan->backward(x.data(), y.data(), dy.data(), dx.data());
    for (size_t i = 0; i < x.size(); ++i) {
      y_expected.push_back(static_cast<float>(oracle::activation(kind, x[i], 0.2)));
      dx_expected.push_back(static_cast<float>(dy[i] * oracle::activation_derivative(kind, x[i], 0.2)));
    }
    CHECK_EQ(differs(y, y_expected, 1e-6, 1e-7), "");
    CHECK_EQ(differs(dx, dx_expected, 1e-5, 1e-6), "");
    std::vector<float> in_place = dy;
    plan->backward(x.data(), y.data(), in_place.data(), in_place.data());
    CHECK_EQ(differs(in_place, dx, 0, 0), "");
  }
}

TEST_CASE("relu: NaN stays NaN and both zeros give no gradient") {
  const auto plan = make_cpu_activation({.count = 4, .kind = Activation::relu});
  const std::vector<float> x{NAN, 0.0F, -0.0F, -INFINITY}, dy{1, 1, 1, 1};
  std::vector<float> y(4), dx(4);
  plan->forward(x.data(), y.data());
  plan->backward(nullptr, y.data(), dy.data(), dx.data());
  CHECK(std::isnan(y[0]));
  CHECK_EQ(differs(std::vector<float>(y.begin() + 1, y.end()), std::vector<float>{0, 0, 0}, 0, 0), "");
  CHECK_EQ(differs(std::vector<float>(dx.begin() + 1, dx.end()), std::vector<float>{0, 0, 0}, 0, 0), "");
}

TEST_CASE("activations: sigmoid and tanh saturate without overflow") {
  const std::vector<float> x{-1000, 1000, -INFINITY, INFINITY};
  std::vector<float> y(4);
  make_cpu_activation({.count = 4, .kind = Activation::sigmoid})->forward(x.data(), y.data());
  CHECK_EQ(differs(y, std::vector<float>{0, 1, 0, 1}, 0, 0), "");
  make_cpu_activation({.count = 4, .kind = Activation::tanh})->forward(x.data(), y.data());
  CHECK_EQ(differs(y, std::vector<float>{-1, 1, -1, 1}, 0, 0), "");
  CHECK_THROWS_AS(make_cpu_activation({.count = 4, .kind = Activation::none}), Error);
}

TEST_CASE("softmax: values and gradients equal the oracle for every place of the axis") {
  for (const auto& [outer, axis, inner] : {std::array<int64_t, 3>{7, 10, 1}, {3, 5, 6}, {1, 2, 9}, {4, 1, 3}}) {
    const auto count = static_cast<size_t>(outer * axis * inner);
    const std::vector<float> x = random_floats(count, 1, -5, 5), dy = random_floats(count, 2);
    const auto plan = make_cpu_softmax({.outer = outer, .axis = axis, .inner = inner});
    std::vector<float> y(count), dx(count);
    plan->forward(x.data(), y.data());
    plan->backward(y.data(), dy.data(), dx.data());
    CHECK_EQ(differs(y, narrow(oracle::softmax(outer, axis, inner, widen(x))), 1e-6, 1e-8), "");
    CHECK_EQ(differs(dx, narrow(oracle::softmax_backward(outer, axis, inner, widen(x), widen(dy))), 1e-5, 1e-7), "");
  }
}

TEST_CASE("softmax: huge logits do not overflow") {
  const std::vector<float> x{1e30F, 1e30F, -1e30F};
  std::vector<float> y(3);
  make_cpu_softmax({.outer = 1, .axis = 3})->forward(x.data(), y.data());
  CHECK_EQ(differs(y, std::vector<float>{0.5F, 0.5F, 0}, 0, 0), "");
}
