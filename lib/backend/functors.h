// The elementwise maths of the optimizers, written once and run by a SIMD loop or a grid-stride kernel. Rounding as in
// PyTorch's CPU kernels (docs: torch semantics 4.1): an fma exactly where PyTorch fuses, compile without contraction.
//
// Math has static float fma(a, b, c) and sqrt(x), correctly rounded, for the target. Being the template's argument it
// also keeps the instantiations of different instruction sets apart (the linker would merge equal names).
// Each functor is called as f(p, g, a, b, c) with the parameter, its gradient and `states` state values.
#pragma once

#include "backend/optimizer_scalars.h"

namespace lockstep {

// Coupled weight decay and the objective's sign come before anything else.
template <class Math, bool decay, class Scalars>
constexpr float effective_gradient(const Scalars& s, float p, float g) {
  g = g * s.sign;
  if constexpr (decay) g = Math::fma(p, s.weight_decay, g);
  return g;
}

enum class SgdMode { plain, first, first_nesterov, momentum, nesterov };  // first: the buffer becomes a copy of g

template <class Math, bool decay, SgdMode mode>
struct SgdUpdate {
  static constexpr int states = mode == SgdMode::plain ? 0 : 1;
  SgdScalars s;
  constexpr void operator()(float& p, float gradient, float& buffer, float&, float&) const {
    float g = effective_gradient<Math, decay>(s, p, gradient);
    if constexpr (mode == SgdMode::first || mode == SgdMode::first_nesterov) buffer = g;
    if constexpr (mode == SgdMode::momentum || mode == SgdMode::nesterov)
      buffer = Math::fma(g, s.gradient_weight, buffer * s.momentum);
    if constexpr (mode == SgdMode::first_nesterov || mode == SgdMode::nesterov)
      g = Math::fma(buffer, s.momentum, g);
    else if constexpr (mode != SgdMode::plain)
      g = buffer;
    p = Math::fma(g, s.minus_lr, p);
  }
};

// Adam and AdamW (the form of PyTorch 2: the first moment is a lerp).
template <class Math, bool decay, bool from_gradient, bool amsgrad>
struct AdamUpdate {
  static constexpr int states = amsgrad ? 3 : 2;
  AdamScalars s;
  constexpr void operator()(float& p, float gradient, float& m, float& v, float& v_max) const {
    const float g = effective_gradient<Math, decay>(s, p, gradient);
    p = p * s.parameter_scale;
    m = Math::fma(s.lerp_weight, g - m, from_gradient ? g : m);
    v = Math::fma(s.one_minus_beta2 * g, g, v * s.beta2);
    float second = v;
    if constexpr (amsgrad) {
      const bool take = (v > v_max) | (v != v);  // a NaN stays
      v_max = take ? v : v_max;
      second = v_max;
    }
    p = p + (s.minus_step * m) / (Math::sqrt(second) / s.root_correction2 + s.eps);
  }
};

// LAMB's direction goes to the third state; the parameter stays until the direction's norm is known.
template <class Math, bool from_gradient>
struct LambDirection {
  static constexpr int states = 3;
  LambScalars s;
  constexpr void operator()(float& p, float gradient, float& m, float& v, float& direction) const {
    const float g = gradient * s.sign;
    m = Math::fma(s.lerp_weight, g - m, from_gradient ? g : m);
    v = Math::fma(s.one_minus_beta2 * g, g, v * s.beta2);
    const float adam = (m * s.inverse_correction1) / (Math::sqrt(v) / s.root_correction2 + s.eps);
    direction = Math::fma(p, s.weight_decay, adam);
  }
};

template <class Math, bool decay>
struct AdadeltaUpdate {
  static constexpr int states = 2;
  AdadeltaScalars s;
  constexpr void operator()(float& p, float gradient, float& square_avg, float& acc_delta, float&) const {
    const float g = effective_gradient<Math, decay>(s, p, gradient);
    square_avg = Math::fma(s.one_minus_rho * g, g, square_avg * s.rho);
    const float delta = Math::sqrt(acc_delta + s.eps) / Math::sqrt(square_avg + s.eps) * g;
    acc_delta = Math::fma(s.one_minus_rho * delta, delta, acc_delta * s.rho);
    p = Math::fma(delta, s.minus_lr, p);
  }
};

// States: square_avg, then grad_avg where centered, then the momentum buffer where there is one.
template <class Math, bool decay, bool centered, bool momentum>
struct RmspropUpdate {
  static constexpr int states = 1 + (centered ? 1 : 0) + (momentum ? 1 : 0);
  RmspropScalars s;
  constexpr void operator()(float& p, float gradient, float& square_avg, float& second, float& third) const {
    const float g = effective_gradient<Math, decay>(s, p, gradient);
    square_avg = Math::fma(s.one_minus_alpha * g, g, square_avg * s.alpha);
    float variance = square_avg;
    if constexpr (centered) {
      second = Math::fma(g, s.one_minus_alpha, second * s.alpha);
      variance = Math::fma(-second, second, square_avg);
    }
    const float average = Math::sqrt(variance) + s.eps;
    if constexpr (momentum) {
      float& buffer = centered ? third : second;
      buffer = buffer * s.momentum + g / average;
      p = Math::fma(buffer, s.minus_lr, p);
    } else {
      p = p + (s.minus_lr * g) / average;
    }
  }
};

template <class Math, bool decay>
struct AdagradUpdate {
  static constexpr int states = 1;
  AdagradScalars s;
  constexpr void operator()(float& p, float gradient, float& sum, float&, float&) const {
    const float g = effective_gradient<Math, decay>(s, p, gradient);
    sum = Math::fma(g, g, sum);
    p = p + (s.minus_lr * g) / (Math::sqrt(sum) + s.eps);
  }
};

}  // namespace lockstep
