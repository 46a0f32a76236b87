// Gradient clipping, once per optimizer step: after the gradients of all micro-batches and ranks are summed and
// divided.
#pragma once

#include <memory>
#include <span>

#include "backend/optimizer_ops.h"
#include "backend/slice_norms.h"
#include "optim/parameter_groups.h"

namespace lockstep {

// As clip_grad_norm_ (SliceNorms::clip), with the parameters' gradients as slices. norm_type: 1, 2, any p > 0, or
// infinity. Throws Error: max_norm negative or NaN, norm_type not positive.
class NormClip {
 public:
  NormClip(const OptimizerOps& ops, std::span<const ParameterRange> slices, double max_norm, double norm_type = 2);

  void clip(std::span<float> gradients);  // waits for nothing
  // The gradient's norm before it was last clipped; it is NaN or infinite when a gradient was, and -1 before the first
  // clip. Waits for the device.
  double norm() const;

 private:
  std::unique_ptr<SliceNorms> norms_;
  double max_norm_, norm_type_;
  bool clipped_ = false;
};

// As clip_grad_value_: clamps to [-limit, limit]; a NaN stays. Throws Error: limit negative or NaN.
void clip_by_value(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double limit);

}  // namespace lockstep
