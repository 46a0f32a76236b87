#include "support/finite_difference.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace lockstep::test {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

std::string gradient_differs(const ScalarFunction& f, const std::vector<float>& x, std::span<const float> gradient,
                             uint32_t seed, double tolerance) {
  if (gradient.size() != x.size()) return fmt::format("{} gradients for {} values", gradient.size(), x.size());
  constexpr float kStep = 1.0F / 64;
  const double allowed = tolerance * std::sqrt(dot(gradient, gradient)) + 1e-4;
  std::mt19937 engine(seed);
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<float> direction(x.size());
    for (float& d : direction) d = (engine() >> 16 & 1) != 0 ? 1.0F : -1.0F;
    const auto at = [&](float step) {
      std::vector<float> moved = x;
      for (size_t i = 0; i < x.size(); ++i) moved[i] += step * direction[i];
      return f(moved);
    };
    const double difference =
        (at(-2 * kStep) - 8 * at(-kStep) + 8 * at(kStep) - at(2 * kStep)) / (12 * static_cast<double>(kStep));
    const double expected = dot(gradient, direction);
    if (!(std::abs(difference - expected) <= allowed))
      return fmt::format("direction {}: finite difference {:.6g}, gradient {:.6g}, allowed {:.2g}", trial, difference,
                         expected, allowed);
  }
  return "";
}

}  // namespace lockstep::test
