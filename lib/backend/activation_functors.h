// The activations that are computed in double, so that they are right to the last float digit, for the CPU's loops and
// the GPU's kernels. value(x); slope(x, y): the derivative from the input and the output, of which kReadsInput says
// which one is read.
#pragma once

#include <cmath>
#include <numbers>

namespace lockstep {

struct TanhFunctor {
  static constexpr bool kReadsInput = false;
  static constexpr double value(double x) { return ::tanh(x); }
  static constexpr double slope(double, double y) { return 1 - y * y; }
};

struct SigmoidFunctor {
  static constexpr bool kReadsInput = false;
  static constexpr double value(double x) { return 1 / (1 + ::exp(-x)); }
  static constexpr double slope(double, double y) { return y * (1 - y); }
};

// x * Phi(x), Phi the normal distribution function.
struct GeluFunctor {
  static constexpr bool kReadsInput = true;
  static constexpr double phi(double x) { return 0.5 * (1 + ::erf(x * std::numbers::sqrt2 / 2)); }
  static constexpr double value(double x) { return x * phi(x); }
  static constexpr double slope(double x, double) {
    const double density = ::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return phi(x) + x * density;
  }
};

// x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanhFunctor {
  static constexpr bool kReadsInput = true;
  static constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
  static constexpr double value(double x) { return 0.5 * x * (1 + ::tanh(kScale * (x + kCubic * x * x * x))); }
  static constexpr double slope(double x, double) {
    const double t = ::tanh(kScale * (x + kCubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
  }
};

}  // namespace lockstep
