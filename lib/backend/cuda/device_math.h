// Correctly rounded arithmetic for the functors of backend/functors.h, in kernels and, for the simulated GPU, on the
// host.
#pragma once

#include <cmath>

namespace lockstep::cuda {

struct DeviceMath {
  static constexpr float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
  static constexpr float sqrt(float x) { return ::sqrtf(x); }
};

}  // namespace lockstep::cuda
