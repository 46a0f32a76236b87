// The optimizer kernels: golden numbers, the same bits from every instruction set, sums against plain loops.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/optimizer_ops.h"
#include "core/cpu_features.h"
#include "support/golden.h"

using namespace lockstep;
using test::differs_bits;

namespace {

struct Tables {
  std::string name;
  CpuOptimizerOps ops;
};

// The tables that this CPU can run.
std::vector<Tables> tables() {
  std::vector<Tables> found{{"generic", CpuOptimizerOps(isa_generic::optimizer_kernels)}};
  if (detect_isa() != Isa::generic) found.push_back({"avx2", CpuOptimizerOps(isa_avx2::optimizer_kernels)});
  if (detect_isa() == Isa::avx512) found.push_back({"avx512", CpuOptimizerOps(isa_avx512::optimizer_kernels)});
  return found;
}

// Magnitudes from denormal to 1e30, both signs, some zeros: rounding meets every case.
std::vector<float> wild(size_t n, uint32_t seed, int low = -40, int high = 30) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(low, high);
  std::vector<float> x(n);
  for (float& value : x) value = engine() % 16 == 0 ? 0.0f : std::ldexp(mantissa(engine), exponent(engine));
  return x;
}

std::vector<float> absolute(std::vector<float> x) {
  for (float& value : x) value = std::abs(value);
  return x;
}

struct State {
  std::vector<float> p, a, b, c;
};

// Runs `update(ops, n, p, g, a, b, c)` on every table for odd lengths and compares all arrays with the generic one.
template <class Update>
void check_same_bits(const Update& update) {
  for (const size_t n : {1, 7, 16, 37, 1003}) {
    State expected;
    for (const Tables& table : tables()) {
      CAPTURE(table.name);
      CAPTURE(n);
      State s{wild(n, 1), absolute(wild(n, 2)), absolute(wild(n, 3)), absolute(wild(n, 4))};
      const std::vector<float> g = wild(n, 5);
      for (int64_t t = 1; t <= 3; ++t)
        update(table.ops, t, n, s.p.data(), g.data(), s.a.data(), s.b.data(), s.c.data());
      if (table.name == "generic") expected = s;
      CHECK_EQ(differs_bits(s.p, expected.p), "");
      CHECK_EQ(differs_bits(s.a, expected.a), "");
      CHECK_EQ(differs_bits(s.b, expected.b), "");
      CHECK_EQ(differs_bits(s.c, expected.c), "");
    }
  }
}

}  // namespace

TEST_CASE("sgd gives the same bits on every instruction set") {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.01})
      for (const bool nesterov : {false, true})
        check_same_bits([&](const OptimizerOps& ops, int64_t t, size_t n, float* p, const float* g, float* a, float*,
                            float*) {
          ops.sgd({.lr = 0.1, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov, .first_step = t == 1},
                  n, p, g, a);
        });
}

TEST_CASE("adam gives the same bits on every instruction set") {
  for (const double beta1 : {0.9, 0.3})
    for (const double decay : {0.0, 0.01})
      for (const bool decoupled : {false, true})
        for (const bool amsgrad : {false, true})
          check_same_bits([&](const OptimizerOps& ops, int64_t t, size_t n, float* p, const float* g, float* a,
                              float* b, float* c) {
            ops.adam({.beta1 = beta1, .weight_decay = decay, .decoupled = decoupled, .amsgrad = amsgrad, .t = t}, n, p,
                     g, a, b, c);
          });
}

TEST_CASE("lamb and lerp and a scaled gradient give the same bits on every instruction set") {
  for (const double beta1 : {0.9, 0.3})
    check_same_bits(
        [&](const OptimizerOps& ops, int64_t t, size_t n, float* p, const float* g, float* a, float* b, float* c) {
          ops.lamb_direction({.beta1 = beta1, .weight_decay = 0.01, .t = t}, n, p, g, a, b, c);
          ops.lerp(n, p, c, 0.25f);
        });
  check_same_bits(
      [&](const OptimizerOps& ops, int64_t t, size_t n, float* p, const float* g, float* a, float*, float*) {
        ops.sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .gradient_scale = 0.3, .first_step = t == 1}, n, p,
                g, a);
      });
}

TEST_CASE("a gradient scale multiplies the gradient and not the decay") {
  for (const Tables& table : tables()) {
    std::vector<float> p{4, 4}, g{1, -2};
    table.ops.sgd({.lr = 1, .weight_decay = 0.25, .gradient_scale = 0.5}, 2, p.data(), g.data(), nullptr);
    CHECK_EQ(p[0], 4 - (0.5f + 1));
    CHECK_EQ(p[1], 4 - (-1.0f + 1));
  }
}

TEST_CASE("adadelta and adagrad give the same bits on every instruction set") {
  for (const double decay : {0.0, 0.01}) {
    check_same_bits([&](const OptimizerOps& ops, int64_t, size_t n, float* p, const float* g, float* a, float* b,
                        float*) { ops.adadelta({.weight_decay = decay, .maximize = true}, n, p, g, a, b); });
    check_same_bits([&](const OptimizerOps& ops, int64_t t, size_t n, float* p, const float* g, float* a, float*,
                        float*) { ops.adagrad({.lr_decay = 0.1, .weight_decay = decay, .t = t}, n, p, g, a); });
  }
}

TEST_CASE("rmsprop gives the same bits on every instruction set") {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.01})
      for (const bool centered : {false, true})
        check_same_bits(
            [&](const OptimizerOps& ops, int64_t, size_t n, float* p, const float* g, float* a, float* b, float* c) {
              ops.rmsprop({.weight_decay = decay, .momentum = momentum, .centered = centered}, n, p, g, a, b, c);
            });
}

// p - lr * g with lr = 1 is fma(g, -1, p); with momentum the products are inexact, so a wrong rounding shows.
TEST_CASE("the update fuses as std fma does") {
  const size_t n = 100003;
  const std::vector<float> g = wild(n, 8), start = wild(n, 9);
  for (const Tables& table : tables()) {
    CAPTURE(table.name);
    std::vector<float> p = start, expected = start;
    for (size_t i = 0; i < n; ++i) expected[i] = std::fma(g[i], -0.1f, start[i]);
    table.ops.sgd({.lr = 0.1}, n, p.data(), g.data(), nullptr);
    CHECK_EQ(differs_bits(p, expected), "");
  }
}

TEST_CASE("golden sgd and adam steps straight from the kernels") {
  const auto file = test::golden("optim.json");
  size_t checked = 0;
  for (const auto& test_case : file["cases"]) {
    const auto& s = test_case["settings"];
    const bool sgd = test_case["optimizer"] == "SGD", adamw = test_case["optimizer"] == "AdamW";
    if (!sgd && !adamw && test_case["optimizer"] != "Adam") continue;
    ++checked;
    for (const Tables& table : tables()) {
      CAPTURE(table.name);
      CAPTURE(test_case["name"].get<std::string>());
      std::vector<float> p = test::flat_f32(file["p0"]), a(p.size()), b(p.size()), c(p.size());
      for (int64_t t = 1; t <= 12; ++t) {
        const auto g = test::flat_f32(file["gradients"][static_cast<size_t>(t - 1)]);
        if (sgd)
          table.ops.sgd({.lr = s["lr"],
                         .momentum = s["momentum"],
                         .dampening = s["dampening"],
                         .weight_decay = s["weight_decay"],
                         .nesterov = s["nesterov"],
                         .maximize = s["maximize"],
                         .first_step = t == 1},
                        p.size(), p.data(), g.data(), a.data());
        else
          table.ops.adam({.lr = s["lr"],
                          .beta1 = s["betas"][0],
                          .beta2 = s["betas"][1],
                          .eps = s["eps"],
                          .weight_decay = s["weight_decay"],
                          .decoupled = adamw,
                          .amsgrad = s["amsgrad"],
                          .maximize = s["maximize"],
                          .t = t},
                         p.size(), p.data(), g.data(), a.data(), b.data(), c.data());
        if (t == 1) CHECK_EQ(differs_bits(p, test::flat_f32(test_case["after_step_1"])), "");
      }
      CHECK_EQ(differs_bits(p, test::flat_f32(test_case["final"])), "");
    }
  }
  CHECK_EQ(checked, 17);
}

TEST_CASE("sums are exact enough and equal on every instruction set") {
  for (const size_t n : {0, 1, 31, 32, 33, 1000, 65537}) {
    CAPTURE(n);
    const std::vector<float> x = wild(n, 6, -10, 10);
    long double squares = 0, absolutes = 0, cubes = 0;
    for (const float value : x) {
      const long double magnitude = std::abs(value);
      squares += magnitude * magnitude, absolutes += magnitude, cubes += magnitude * magnitude * magnitude;
    }
    const CpuOptimizerOps generic(isa_generic::optimizer_kernels);
    for (const Tables& table : tables()) {
      CAPTURE(table.name);
      CHECK(table.ops.sum_of_squares(n, x.data()) == doctest::Approx(double(squares)).epsilon(1e-13));
      CHECK(table.ops.sum_of_abs(n, x.data()) == doctest::Approx(double(absolutes)).epsilon(1e-13));
      CHECK(table.ops.sum_of_powers(n, x.data(), 3) == doctest::Approx(double(cubes)).epsilon(1e-13));
      CHECK_EQ(table.ops.sum_of_squares(n, x.data()), generic.sum_of_squares(n, x.data()));
      CHECK_EQ(table.ops.sum_of_abs(n, x.data()), generic.sum_of_abs(n, x.data()));
      CHECK_EQ(table.ops.sum_of_powers(n, x.data(), 3), generic.sum_of_powers(n, x.data(), 3));
    }
  }
}

TEST_CASE("sums of squares neither overflow nor vanish") {
  const std::vector<float> huge(100, 1e38f), tiny(100, 1e-38f);
  for (const Tables& table : tables()) {
    CHECK(table.ops.sum_of_squares(100, huge.data()) == doctest::Approx(1e78));
    CHECK(table.ops.sum_of_squares(100, tiny.data()) * 1e80 == doctest::Approx(1e6));
  }
}

TEST_CASE("the greatest magnitude is found and a NaN is kept") {
  for (const Tables& table : tables()) {
    CAPTURE(table.name);
    CHECK_EQ(table.ops.max_abs(0, nullptr), 0.0f);
    std::vector<float> x = wild(1003, 7, -10, 10);
    x[517] = -5000.0f;
    CHECK_EQ(table.ops.max_abs(x.size(), x.data()), 5000.0f);
    x[2] = -std::numeric_limits<float>::infinity();
    CHECK(std::isinf(table.ops.max_abs(x.size(), x.data())));
    x[1000] = -std::nanf("");
    CHECK(std::isnan(table.ops.max_abs(x.size(), x.data())));
  }
}

TEST_CASE("scale clamp and fill reach every element and keep NaN") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const Tables& table : tables()) {
    CAPTURE(table.name);
    for (const size_t n : {6, 37}) {
      std::vector<float> x(n, 0.25f);
      const std::vector<float> head{-3.0f, 3.0f, -inf, inf, nan, 0.5f}, limited{-0.5f, 0.5f, -0.5f, 0.5f, nan, 0.5f};
      std::copy(head.begin(), head.end(), x.begin());
      table.ops.clamp(n, x.data(), 0.5f);
      CHECK_EQ(differs_bits(std::span(x).first(6), limited), "");
      table.ops.scale(n, x.data(), -2.0f);
      CHECK_EQ(x[0], 1.0f);
      if (n > 6) CHECK_EQ(x.back(), -0.5f);
      table.ops.fill(n, x.data(), 7.0f);
      CHECK_EQ(differs_bits(x, std::vector<float>(n, 7.0f)), "");
    }
  }
}
