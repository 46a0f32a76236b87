// What an optimizer kernel needs of its arguments: everything that PyTorch computes in Python doubles is computed here
// in double and cast to float once. Plain data without inline code, shared by the CPU's and the GPU's kernels.
#pragma once

#include "backend/optimizer_ops.h"

namespace lockstep {

// `sign` is -1 where the objective is maximised (g * -1 is exactly -g), times SGD's gradient_scale; `decay` whether g
// becomes g + weight_decay * p.
struct SgdScalars {
  float sign, weight_decay, momentum, gradient_weight, minus_lr;  // gradient_weight: 1 - dampening
  bool decay, use_momentum, nesterov, first_step;
};

// m = lerp(m, g, 1 - beta1) is fma(lerp_weight, g - m, from_gradient ? g : m).
// parameter_scale: 1 - lr * weight_decay where decoupled, else 1.
struct AdamScalars {
  float sign, weight_decay, parameter_scale, lerp_weight, beta2, one_minus_beta2, root_correction2, eps, minus_step;
  bool decay, from_gradient, amsgrad;
};

// The direction is (m * inverse_correction1) / (sqrt(v) / root_correction2 + eps) + weight_decay * p.
struct LambScalars {
  float sign, weight_decay, lerp_weight, beta2, one_minus_beta2, inverse_correction1, root_correction2, eps;
  bool from_gradient;
};

struct AdadeltaScalars {
  float sign, weight_decay, rho, one_minus_rho, eps, minus_lr;
  bool decay;
};

struct RmspropScalars {
  float sign, weight_decay, alpha, one_minus_alpha, eps, momentum, minus_lr;
  bool decay, centered, use_momentum;
};

struct AdagradScalars {
  float sign, weight_decay, eps, minus_lr;  // minus_lr: -lr / (1 + (t - 1) * lr_decay)
  bool decay;
};

SgdScalars scalars(const SgdArgs& args);
AdamScalars scalars(const AdamArgs& args);
LambScalars scalars(const LambArgs& args);
AdadeltaScalars scalars(const AdadeltaArgs& args);
RmspropScalars scalars(const RmspropArgs& args);
AdagradScalars scalars(const AdagradArgs& args);

}  // namespace lockstep
