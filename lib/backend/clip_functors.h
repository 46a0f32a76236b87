// What clip_grad_norm_ makes of the norms of slices, for the host and for kernels.
#pragma once

#include <cmath>

namespace lockstep {

// The norm of norms: the root of the sum of their powers in double; with the infinity norm the greatest.
struct NormSum {
  double type;
  double sum = 0;
  constexpr void add(float slice_norm) {
    const double norm = slice_norm;
    if (infinite())
      sum = norm > sum || norm != norm ? norm : sum;
    else
      sum += type == 2 ? norm * norm : type == 1 ? norm : ::pow(norm, type);
  }
  constexpr float root() const {
    if (infinite() || type == 1) return static_cast<float>(sum);
    return static_cast<float>(type == 2 ? ::sqrt(sum) : ::pow(sum, 1 / type));
  }

 private:
  constexpr bool infinite() const { return type > 1.7976931348623157e308; }
};

// min(1, max_norm / (total + 1e-6)); PyTorch divides a number by a tensor as its reciprocal times the number.
constexpr float clip_factor(float total, double max_norm) {
  const float ratio = 1.0f / (total + 1e-6f) * static_cast<float>(max_norm);
  return ratio > 1.0f ? 1.0f : ratio;  // a NaN stays
}

}  // namespace lockstep
