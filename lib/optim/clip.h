// Gradient clipping, once per optimizer step: after the gradients of all micro-batches and ranks are summed and
// divided.
#pragma once

#include <span>

#include "backend/optimizer_ops.h"
#include "optim/parameter_groups.h"

namespace lockstep {

// As clip_grad_norm_: a float norm per slice (parameter), the float norm of these norms, then every gradient times
// min(1, max_norm / (total + 1e-6)), also when that is 1 (a NaN reaches all of them). Returns the norm before clipping;
// it is NaN or infinite when a gradient is. norm_type: 1, 2, any p > 0, or infinity. Gaps between slices are not
// touched. Throws Error: max_norm negative or NaN, norm_type not positive.
float clip_by_norm(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double max_norm, double norm_type = 2);

// The norm alone.
float gradient_norm(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<const float> gradients,
                    double norm_type = 2);

// As clip_grad_value_: clamps to [-limit, limit]; a NaN stays. Throws Error: limit negative or NaN.
void clip_by_value(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double limit);

}  // namespace lockstep
