// The elementwise losses, for the CPU's loops and the GPU's kernels: value(x, t, column), and slope(x, t, column), its
// derivative by x.
#pragma once

#include <cmath>
#include <cstddef>

namespace lockstep {

struct SquaredError {
  static constexpr const char* kName = "mse";
  constexpr double value(double x, double t, size_t) const { return (x - t) * (x - t); }
  constexpr double slope(double x, double t, size_t) const { return 2 * (x - t); }
};

struct AbsoluteError {
  static constexpr const char* kName = "l1";
  constexpr double value(double x, double t, size_t) const { return ::fabs(x - t); }
  constexpr double slope(double x, double t, size_t) const { return x == t ? 0 : ::copysign(1.0, x - t); }
};

// Quadratic within beta of the target, linear outside.
struct SmoothAbsoluteError {
  static constexpr const char* kName = "smooth_l1";
  double beta;
  constexpr double value(double x, double t, size_t) const {
    const double z = ::fabs(x - t);
    return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
  }
  constexpr double slope(double x, double t, size_t) const {
    const double z = x - t;
    if (::fabs(z) < beta) return z / beta;
    return z == 0 ? 0 : ::copysign(1.0, z);
  }
};

// -w t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)), w the column's pos_weight, in the form that cannot overflow:
// (1 - t) x + (1 + (w - 1) t) (log1p(exp(-|x|)) + max(-x, 0)).
struct LogisticLoss {
  static constexpr const char* kName = "bce_with_logits";
  const float* pos_weight;  // one per column, null: 1
  constexpr double factor(double t, size_t column) const {
    return pos_weight == nullptr ? 1.0 : 1 + (static_cast<double>(pos_weight[column]) - 1) * t;
  }
  constexpr double value(double x, double t, size_t column) const {
    return (1 - t) * x + factor(t, column) * (::log1p(::exp(-::fabs(x))) + (x < 0 ? -x : 0.0));
  }
  constexpr double slope(double x, double t, size_t column) const {
    return (1 - t) - factor(t, column) / (1 + ::exp(x));
  }
};

}  // namespace lockstep
