// LARS and LAMB against plain loops in double: per-parameter trust ratios, what is excluded, zeros.
#include "backend/trust_ratio.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "backend/cpu/optimizer_ops.h"
#include "optim/optimizer.h"
#include "support/golden.h"

using namespace lockstep;

namespace {

const CpuOptimizerOps kOps;
constexpr size_t kArena = 64;
// Two adapted parameters of unlike size and scale, one that isn't adapted, all with padding behind them.
const ParameterRange kFirst{0, 20}, kSecond{32, 5}, kPlain{48, 7};

std::vector<float> random_arena(uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(kArena);
  for (const ParameterRange& range : {kFirst, kSecond, kPlain})
    for (size_t i = 0; i < range.count; ++i) x[range.offset + i] = normal(engine) * (range.offset == 0 ? 3.0f : 0.2f);
  return x;
}

std::vector<ParameterGroup> groups(double lr, double decay) {
  return {{.name = "all", .ranges = {kFirst, kSecond}, .lr = lr, .weight_decay = decay},
          {.name = "all (norm and bias)", .ranges = {kPlain}, .lr = lr, .weight_decay = 0, .adapt = false}};
}

struct Oracle {  // one parameter in double
  std::vector<double> p, m, v;
};

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

std::vector<double> slice(const std::vector<float>& arena, const ParameterRange& range) {
  const auto begin = arena.begin() + static_cast<std::ptrdiff_t>(range.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(range.count)};
}

void lars_loop(Oracle& o, const std::vector<double>& g, const OptimizerSettings& s, double lr, double decay, bool adapt,
               int64_t) {
  const double sign = s.maximize ? -1 : 1;
  const double ratio = adapt ? s.trust_coefficient * norm(o.p) / (norm(g) + decay * norm(o.p) + s.eps.value()) : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    const double d = ratio * (sign * g[i] + decay * o.p[i]);
    o.m[i] = s.momentum * o.m[i] + d;
    o.p[i] -= lr * (s.nesterov ? d + s.momentum * o.m[i] : o.m[i]);
  }
}

void lamb_loop(Oracle& o, const std::vector<double>& g, const OptimizerSettings& s, double lr, double decay, bool adapt,
               int64_t t) {
  const double sign = s.maximize ? -1 : 1;
  std::vector<double> u(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    o.m[i] = s.beta1 * o.m[i] + (1 - s.beta1) * sign * g[i];
    o.v[i] = s.beta2 * o.v[i] + (1 - s.beta2) * g[i] * g[i];
    const double m = o.m[i] / (1 - std::pow(s.beta1, t)), v = o.v[i] / (1 - std::pow(s.beta2, t));
    u[i] = m / (std::sqrt(v) + s.eps.value()) + decay * o.p[i];
  }
  const double ratio = adapt ? norm(o.p) / norm(u) : 1;
  for (size_t i = 0; i < g.size(); ++i) o.p[i] -= lr * ratio * u[i];
}

void check_against_loop(OptimizerSettings settings, double lr, double decay, decltype(&lars_loop) loop) {
  settings = resolve(settings);
  CAPTURE(settings.kind);
  const auto optimizer = make_optimizer(settings, groups(lr, decay), kArena, kOps);
  std::vector<float> p = random_arena(1);
  std::vector<Oracle> oracles;
  for (const ParameterRange& range : {kFirst, kSecond, kPlain})
    oracles.push_back({slice(p, range), std::vector<double>(range.count), std::vector<double>(range.count)});
  for (uint32_t t = 1; t <= 12; ++t) {
    const std::vector<float> g = random_arena(100 + t);
    optimizer->step(p, g);
    size_t k = 0;
    for (const ParameterRange& range : {kFirst, kSecond, kPlain}) {
      const bool adapt = range != kPlain;
      loop(oracles[k], slice(g, range), settings, lr, adapt ? decay : 0, adapt, t);
      for (size_t i = 0; i < range.count; ++i)
        CHECK_EQ(p[range.offset + i], doctest::Approx(oracles[k].p[i]).epsilon(2e-5).scale(0.1));
      ++k;
    }
  }
  for (const size_t gap : {20, 31, 37, 47, 55, 63}) CHECK_EQ(p[gap], 0.0f);
}

OptimizerSettings kind(const std::string& name) {
  OptimizerSettings settings;
  settings.kind = name;
  return settings;
}

}  // namespace

TEST_CASE("lars equals a plain loop in double") {
  for (const double decay : {0.0, 0.01})
    for (const double momentum : {0.0, 0.9})
      for (const bool maximize : {false, true}) {
        OptimizerSettings s = kind("lars");
        s.momentum = momentum, s.maximize = maximize, s.trust_coefficient = 0.02;
        check_against_loop(s, 0.5, decay, lars_loop);
        s.nesterov = momentum > 0;
        check_against_loop(s, 0.5, decay, lars_loop);
      }
}

TEST_CASE("lamb equals a plain loop in double") {
  for (const double decay : {0.0, 0.01})
    for (const bool maximize : {false, true})
      for (const double beta1 : {0.9, 0.3}) {
        OptimizerSettings s = kind("lamb");
        s.beta1 = beta1, s.maximize = maximize;
        check_against_loop(s, 0.01, decay, lamb_loop);
      }
}

TEST_CASE("a step of lars and lamb is as long as the trust ratio says") {
  std::vector<float> p(16), g(16);
  for (size_t i = 0; i < 16; ++i) p[i] = 2, g[i] = i % 2 == 0 ? 1e4f : -1e4f;  // |p| = 8, a huge gradient
  const auto change = [&](const std::string& name, double lr) {
    std::vector<float> q = p;
    make_optimizer(kind(name), {{"all", {{0, 16}}, lr, 0}}, 16, kOps)->step(q, g);
    double sum = 0;
    for (size_t i = 0; i < 16; ++i) sum += (q[i] - p[i]) * static_cast<double>(q[i] - p[i]);
    return std::sqrt(sum);
  };
  CHECK_EQ(change("lars", 10), doctest::Approx(10 * 1e-3 * 8).epsilon(1e-5));
  CHECK_EQ(change("lamb", 0.01), doctest::Approx(0.01 * 8).epsilon(1e-5));
}

TEST_CASE("zero weights and zero gradients stay finite") {
  CHECK_EQ(lars_trust_ratio(1e-3, 0, 1, 0.1, 1e-8), 1.0);
  CHECK_EQ(lars_trust_ratio(1e-3, 1, 0, 0, 1e-8), 1.0);
  CHECK_EQ(lamb_trust_ratio(0, 1), 1.0);
  CHECK_EQ(lamb_trust_ratio(1, 0), 1.0);
  for (const char* name : {"lars", "lamb"}) {
    CAPTURE(name);
    for (const float weight : {0.0f, 1.0f})
      for (const float gradient : {0.0f, 1.0f}) {
        const auto optimizer = make_optimizer(kind(name), {{"all", {{0, 8}}, 0.5, 0}}, 8, kOps);
        std::vector<float> p(8, weight), g(8, gradient);
        for (int t = 0; t < 3; ++t) optimizer->step(p, g);
        for (const float value : p) CHECK(std::isfinite(value));
        if (gradient == 0) CHECK_EQ(p[0], weight);
        if (weight == 0 && gradient != 0) CHECK_LT(p[0], 0.0f);  // a parameter that starts at zero can move
      }
  }
}

TEST_CASE("a parameter that is not finite shows in the step") {
  for (const char* name : {"lars", "lamb"}) {
    const auto optimizer = make_optimizer(kind(name), {{"all", {{0, 4}}, 0.5, 0}}, 4, kOps);
    std::vector<float> p(4, 1), g{1, NAN, 1, 1};
    optimizer->step(p, g);
    CHECK(std::isnan(p[0]));
  }
}

TEST_CASE("trust settings belong to their kinds and are checked") {
  OptimizerSettings s = kind("sgd");
  s.trust_coefficient = 0.1;
  CHECK_THROWS(resolve(s));
  s = kind("adamw"), s.adapt_norm_and_bias = true;
  CHECK_THROWS(resolve(s));
  s = kind("lars"), s.trust_coefficient = 0;
  CHECK_THROWS(resolve(s));
  s = kind("lars"), s.nesterov = true;
  CHECK_THROWS(resolve(s));
  s.momentum = 0.9, s.adapt_norm_and_bias = true;
  CHECK_NOTHROW(resolve(s));
  CHECK_EQ(resolve(kind("lars")).lr.value(), 0.1);
  CHECK_EQ(resolve(kind("lamb")).weight_decay.value(), 0.01);
  CHECK_EQ(resolve(kind("lamb")).eps.value(), 1e-6);
}
