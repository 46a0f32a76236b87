// Optimizer and clipping loops over the functors of backend/functors.h, compiled once per instruction set. Whatever is
// the same for a whole range (decay, momentum, ...) is a template argument, so that the loops have no branches.
#include "backend/cpu/optimizer_kernels.h"

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa_math.h"
#include "backend/functors.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <class Functor>
void run(const Functor f, size_t n, float* __restrict p, const float* __restrict g, float* __restrict a = nullptr,
         float* __restrict b = nullptr, float* __restrict c = nullptr) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    float parameter = p[i], x = 0, y = 0, z = 0;
    if constexpr (Functor::states > 0) x = a[i];
    if constexpr (Functor::states > 1) y = b[i];
    if constexpr (Functor::states > 2) z = c[i];
    f(parameter, g[i], x, y, z);
    p[i] = parameter;
    if constexpr (Functor::states > 0) a[i] = x;
    if constexpr (Functor::states > 1) b[i] = y;
    if constexpr (Functor::states > 2) c[i] = z;
  }
}

template <bool decay>
void sgd_decay(const SgdScalars& s, size_t n, float* p, const float* g, float* buffer) {
  if (!s.use_momentum) return run(SgdUpdate<Math, decay, SgdMode::plain>{s}, n, p, g);
  if (s.nesterov) {
    if (s.first_step) return run(SgdUpdate<Math, decay, SgdMode::first_nesterov>{s}, n, p, g, buffer);
    return run(SgdUpdate<Math, decay, SgdMode::nesterov>{s}, n, p, g, buffer);
  }
  if (s.first_step) return run(SgdUpdate<Math, decay, SgdMode::first>{s}, n, p, g, buffer);
  run(SgdUpdate<Math, decay, SgdMode::momentum>{s}, n, p, g, buffer);
}

void sgd(const SgdScalars& s, size_t n, float* p, const float* g, float* buffer) {
  s.decay ? sgd_decay<true>(s, n, p, g, buffer) : sgd_decay<false>(s, n, p, g, buffer);
}

template <bool decay, bool from_gradient>
void adam_form(const AdamScalars& s, size_t n, float* p, const float* g, float* m, float* v, float* v_max) {
  if (s.amsgrad) return run(AdamUpdate<Math, decay, from_gradient, true>{s}, n, p, g, m, v, v_max);
  run(AdamUpdate<Math, decay, from_gradient, false>{s}, n, p, g, m, v);
}

void adam(const AdamScalars& s, size_t n, float* p, const float* g, float* m, float* v, float* v_max) {
  if (s.decay) return (s.from_gradient ? adam_form<true, true> : adam_form<true, false>)(s, n, p, g, m, v, v_max);
  (s.from_gradient ? adam_form<false, true> : adam_form<false, false>)(s, n, p, g, m, v, v_max);
}

template <bool from_gradient>
void lamb_form(const LambDirection<Math, from_gradient> f, size_t n, const float* __restrict p,
               const float* __restrict g, float* __restrict m, float* __restrict v, float* __restrict direction) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    float parameter = p[i], first = m[i], second = v[i], result = 0;
    f(parameter, g[i], first, second, result);
    m[i] = first;
    v[i] = second;
    direction[i] = result;
  }
}

void lamb_direction(const LambScalars& s, size_t n, const float* p, const float* g, float* m, float* v,
                    float* direction) {
  if (s.from_gradient) return lamb_form(LambDirection<Math, true>{s}, n, p, g, m, v, direction);
  lamb_form(LambDirection<Math, false>{s}, n, p, g, m, v, direction);
}

void adadelta(const AdadeltaScalars& s, size_t n, float* p, const float* g, float* square_avg, float* acc_delta) {
  if (s.decay) return run(AdadeltaUpdate<Math, true>{s}, n, p, g, square_avg, acc_delta);
  run(AdadeltaUpdate<Math, false>{s}, n, p, g, square_avg, acc_delta);
}

template <bool decay>
void rmsprop_decay(const RmspropScalars& s, size_t n, float* p, const float* g, float* square_avg, float* grad_avg,
                   float* momentum) {
  if (s.centered) {
    if (s.use_momentum) return run(RmspropUpdate<Math, decay, true, true>{s}, n, p, g, square_avg, grad_avg, momentum);
    return run(RmspropUpdate<Math, decay, true, false>{s}, n, p, g, square_avg, grad_avg);
  }
  if (s.use_momentum) return run(RmspropUpdate<Math, decay, false, true>{s}, n, p, g, square_avg, momentum);
  run(RmspropUpdate<Math, decay, false, false>{s}, n, p, g, square_avg);
}

void rmsprop(const RmspropScalars& s, size_t n, float* p, const float* g, float* square_avg, float* grad_avg,
             float* momentum) {
  (s.decay ? rmsprop_decay<true> : rmsprop_decay<false>)(s, n, p, g, square_avg, grad_avg, momentum);
}

void adagrad(const AdagradScalars& s, size_t n, float* p, const float* g, float* sum) {
  if (s.decay) return run(AdagradUpdate<Math, true>{s}, n, p, g, sum);
  run(AdagradUpdate<Math, false>{s}, n, p, g, sum);
}

// Eight vectors of four doubles are the 32 lanes; the compiler cuts or joins them to what the instruction set has.
typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
constexpr size_t kLanes = 32, kWidth = 4;

double sum_lanes(double* lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

// Sum of x^2 (exact in double: a float has 24 bits, a double 53) or of |x|.
template <bool squares>
double sum_of(size_t n, const float* x) {
  Doubles sums[kLanes / kWidth] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 8
    for (size_t k = 0; k < kLanes / kWidth; ++k) {
      Floats single;
      __builtin_memcpy(&single, x + i + k * kWidth, sizeof single);
      if constexpr (!squares) single = (Floats)((Ints)single & 0x7fffffff);
      const Doubles wide = __builtin_convertvector(single, Doubles);
      sums[k] += squares ? wide * wide : wide;
    }
  }
  double lanes[kLanes];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (size_t j = 0; i < n; ++i, ++j) {
    const double value = x[i];
    lanes[j] += squares ? value * value : __builtin_fabs(value);
  }
  return sum_lanes(lanes);
}

double sum_of_squares(size_t n, const float* x) { return sum_of<true>(n, x); }
double sum_of_abs(size_t n, const float* x) { return sum_of<false>(n, x); }

double sum_of_powers(size_t n, const float* x, double power) {
  double lanes[kLanes] = {};
  for (size_t i = 0; i < n; ++i) lanes[i % kLanes] += __builtin_pow(__builtin_fabs(x[i]), power);
  return sum_lanes(lanes);
}

// Without the sign bit floats order like their bit patterns, and a NaN is above infinity.
float max_abs(size_t n, const float* x) {
  int32_t greatest = 0;
#pragma omp simd reduction(max : greatest)
  for (size_t i = 0; i < n; ++i) {
    const int32_t bits = __builtin_bit_cast(int32_t, x[i]) & 0x7fffffff;
    greatest = bits > greatest ? bits : greatest;
  }
  return __builtin_bit_cast(float, greatest);
}

void scale(size_t n, float* x, float factor) {
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

void clamp(size_t n, float* x, float limit) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    float value = x[i];
    value = value > limit ? limit : value;
    x[i] = value < -limit ? -limit : value;
  }
}

void fill(size_t n, float* x, float value) {
  for (size_t i = 0; i < n; ++i) x[i] = value;
}

void lerp(size_t n, float* __restrict x, const float* __restrict y, float weight) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) x[i] = Math::fma(weight, y[i] - x[i], x[i]);
}

}  // namespace

extern const OptimizerKernels optimizer_kernels;
const OptimizerKernels optimizer_kernels = {
    .sgd = sgd,
    .adam = adam,
    .lamb_direction = lamb_direction,
    .adadelta = adadelta,
    .rmsprop = rmsprop,
    .adagrad = adagrad,
    .sum_of_squares = sum_of_squares,
    .sum_of_abs = sum_of_abs,
    .sum_of_powers = sum_of_powers,
    .max_abs = max_abs,
    .scale = scale,
    .clamp = clamp,
    .fill = fill,
    .lerp = lerp,
};

}  // namespace lockstep::LOCKSTEP_ISA
