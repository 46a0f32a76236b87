#include "optim/clip.h"

#include <cmath>

#include "core/error.h"

namespace lockstep {

static float slice_norm(const OptimizerOps& ops, size_t n, const float* x, double type) {
  if (std::isinf(type)) return ops.max_abs(n, x);
  if (type == 2) return static_cast<float>(std::sqrt(ops.sum_of_squares(n, x)));
  if (type == 1) return static_cast<float>(ops.sum_of_abs(n, x));
  return static_cast<float>(std::pow(ops.sum_of_powers(n, x, type), 1 / type));
}

float gradient_norm(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<const float> gradients,
                    double norm_type) {
  if (!(norm_type > 0)) throw_error("train.clip_norm_type: expected a number above 0 or inf, found {}", norm_type);
  double sum = 0;  // of the norms' powers; with the infinity norm the greatest
  for (const ParameterRange& slice : slices) {
    const double norm = slice_norm(ops, slice.count, gradients.subspan(slice.offset, slice.count).data(), norm_type);
    if (std::isinf(norm_type))
      sum = norm > sum || std::isnan(norm) ? norm : sum;
    else
      sum += norm_type == 2 ? norm * norm : norm_type == 1 ? norm : std::pow(norm, norm_type);
  }
  if (std::isinf(norm_type) || norm_type == 1) return static_cast<float>(sum);
  return static_cast<float>(norm_type == 2 ? std::sqrt(sum) : std::pow(sum, 1 / norm_type));
}

float clip_by_norm(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double max_norm, double norm_type) {
  if (!(max_norm >= 0)) throw_error("train.clip_norm: expected a number from 0, found {}", max_norm);
  const float total = gradient_norm(ops, slices, gradients, norm_type);
  // PyTorch divides a number by a tensor as its reciprocal times the number.
  const float ratio = 1.0f / (total + 1e-6f) * static_cast<float>(max_norm);
  const float factor = ratio > 1.0f ? 1.0f : ratio;  // a NaN stays
  for (const ParameterRange& slice : slices)
    ops.scale(slice.count, gradients.subspan(slice.offset, slice.count).data(), factor);
  return total;
}

void clip_by_value(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double limit) {
  if (!(limit >= 0)) throw_error("train.clip_value: expected a number from 0, found {}", limit);
  for (const ParameterRange& slice : slices)
    ops.clamp(slice.count, gradients.subspan(slice.offset, slice.count).data(), static_cast<float>(limit));
}

}  // namespace lockstep
