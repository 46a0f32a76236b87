#include "backend/optimizer_scalars.h"

#include <cmath>

namespace lockstep {

static float f(double x) { return static_cast<float>(x); }
static float sign_of(bool maximize) { return maximize ? -1.0f : 1.0f; }

SgdScalars scalars(const SgdArgs& args) {
  return {.sign = f(sign_of(args.maximize) * args.gradient_scale),
          .weight_decay = f(args.weight_decay),
          .momentum = f(args.momentum),
          .gradient_weight = f(1 - args.dampening),
          .minus_lr = f(-args.lr),
          .decay = args.weight_decay != 0,
          .use_momentum = args.momentum != 0,
          .nesterov = args.nesterov,
          .first_step = args.first_step};
}

AdamScalars scalars(const AdamArgs& args) {
  const double t = static_cast<double>(args.t);
  const double correction1 = 1 - std::pow(args.beta1, t), correction2 = 1 - std::pow(args.beta2, t);
  const float weight = f(1 - args.beta1);
  const bool from_gradient = !(weight < 0.5f);
  return {.sign = sign_of(args.maximize),
          .weight_decay = f(args.weight_decay),
          .parameter_scale = args.decoupled ? f(1 - args.lr * args.weight_decay) : 1.0f,
          .lerp_weight = from_gradient ? weight - 1.0f : weight,
          .beta2 = f(args.beta2),
          .one_minus_beta2 = f(1 - args.beta2),
          .root_correction2 = f(std::sqrt(correction2)),
          .eps = f(args.eps),
          .minus_step = f(-(args.lr / correction1)),
          .decay = !args.decoupled && args.weight_decay != 0,
          .from_gradient = from_gradient,
          .amsgrad = args.amsgrad};
}

LambScalars scalars(const LambArgs& args) {
  const double t = static_cast<double>(args.t);
  const float weight = f(1 - args.beta1);
  const bool from_gradient = !(weight < 0.5f);
  return {.sign = sign_of(args.maximize),
          .weight_decay = f(args.weight_decay),
          .lerp_weight = from_gradient ? weight - 1.0f : weight,
          .beta2 = f(args.beta2),
          .one_minus_beta2 = f(1 - args.beta2),
          .inverse_correction1 = f(1 / (1 - std::pow(args.beta1, t))),
          .root_correction2 = f(std::sqrt(1 - std::pow(args.beta2, t))),
          .eps = f(args.eps),
          .from_gradient = from_gradient};
}

AdadeltaScalars scalars(const AdadeltaArgs& args) {
  return {.sign = sign_of(args.maximize),
          .weight_decay = f(args.weight_decay),
          .rho = f(args.rho),
          .one_minus_rho = f(1 - args.rho),
          .eps = f(args.eps),
          .minus_lr = f(-args.lr),
          .decay = args.weight_decay != 0};
}

RmspropScalars scalars(const RmspropArgs& args) {
  return {.sign = sign_of(args.maximize),
          .weight_decay = f(args.weight_decay),
          .alpha = f(args.alpha),
          .one_minus_alpha = f(1 - args.alpha),
          .eps = f(args.eps),
          .momentum = f(args.momentum),
          .minus_lr = f(-args.lr),
          .decay = args.weight_decay != 0,
          .centered = args.centered,
          .use_momentum = args.momentum != 0};
}

AdagradScalars scalars(const AdagradArgs& args) {
  return {.sign = sign_of(args.maximize),
          .weight_decay = f(args.weight_decay),
          .eps = f(args.eps),
          .minus_lr = f(-(args.lr / (1 + static_cast<double>(args.t - 1) * args.lr_decay))),
          .decay = args.weight_decay != 0};
}

}  // namespace lockstep
