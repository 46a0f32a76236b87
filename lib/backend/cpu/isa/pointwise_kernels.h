// Elementwise kernels on n floats; an output may be one of the inputs.
#pragma once

#include <cstddef>

namespace lockstep {

struct PointwiseKernels {
  void (*fill)(size_t n, float value, float* x);
  void (*add)(size_t n, const float* a, const float* b, float* y);
  void (*relu)(size_t n, const float* x, float* y);                         // NaN stays NaN
  void (*relu_mask)(size_t n, const float* y, const float* dy, float* dx);  // dx = y > 0 ? dy : 0
  void (*leaky_relu)(size_t n, float slope, const float* x, float* y);      // x > 0 ? x : slope * x
  void (*leaky_relu_backward)(size_t n, float slope, const float* x, const float* dy, float* dx);
  // y = exp(x), within 2 ulp and equal on all instruction sets: 0 below -87.33, infinity above 88.37, NaN stays NaN.
  void (*exp)(size_t n, const float* x, float* y);
};

namespace isa_generic {
extern const PointwiseKernels pointwise_kernels;
}
namespace isa_avx2 {
extern const PointwiseKernels pointwise_kernels;
}
namespace isa_avx512 {
extern const PointwiseKernels pointwise_kernels;
}

}  // namespace lockstep
