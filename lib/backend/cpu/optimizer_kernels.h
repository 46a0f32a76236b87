// The table of optimizer and clipping kernels that backend/cpu/isa/optimizer_kernels.cpp fills once per instruction
// set. All three tables give the same bits. Kernels keep no state: a range may be cut into pieces for several threads.
#pragma once

#include <cstddef>

#include "backend/optimizer_scalars.h"

namespace lockstep {

struct OptimizerKernels {
  void (*sgd)(const SgdScalars&, size_t n, float* p, const float* g, float* momentum);
  void (*adam)(const AdamScalars&, size_t n, float* p, const float* g, float* m, float* v, float* v_max);
  void (*lamb_direction)(const LambScalars&, size_t n, const float* p, const float* g, float* m, float* v,
                         float* direction);
  void (*adadelta)(const AdadeltaScalars&, size_t n, float* p, const float* g, float* square_avg, float* acc_delta);
  void (*rmsprop)(const RmspropScalars&, size_t n, float* p, const float* g, float* square_avg, float* grad_avg,
                  float* momentum);
  void (*adagrad)(const AdagradScalars&, size_t n, float* p, const float* g, float* sum);

  // Sums in double over 32 lanes: element i goes to lane i mod 32 in ascending order, then the upper half of the lanes
  // is added to the lower half until one is left.
  double (*sum_of_squares)(size_t n, const float* x);
  double (*sum_of_abs)(size_t n, const float* x);
  double (*sum_of_powers)(size_t n, const float* x, double power);
  float (*max_abs)(size_t n, const float* x);
  void (*scale)(size_t n, float* x, float factor);
  void (*clamp)(size_t n, float* x, float limit);
  void (*fill)(size_t n, float* x, float value);
  void (*lerp)(size_t n, float* x, const float* y, float weight);
};

namespace isa_generic {
extern const OptimizerKernels optimizer_kernels;
}
namespace isa_avx2 {
extern const OptimizerKernels optimizer_kernels;
}
namespace isa_avx512 {
extern const OptimizerKernels optimizer_kernels;
}

}  // namespace lockstep
