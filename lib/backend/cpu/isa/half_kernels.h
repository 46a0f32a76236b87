// Elementwise kernels on activations stored in 16 bits; an output may be one of the inputs of its type.
#pragma once

#include <cstddef>

namespace lockstep {

struct HalfKernels {
  void (*widen)(size_t n, const void* from, float* to);
  void (*narrow)(size_t n, const float* from, void* to);
  void (*round)(size_t n, const float* from, float* to);                 // narrowed and widened again
  void (*add)(size_t n, const void* a, const void* b, void* y);          // the sum in fp32
  void (*relu)(size_t n, const void* x, void* y);                        // NaN stays NaN
  void (*relu_mask)(size_t n, const void* y, const void* dy, void* dx);  // dx = y > 0 ? dy : 0
};

// [0]: bf16, [1]: fp16
namespace isa_generic {
extern const HalfKernels half_kernels[2];
}
namespace isa_avx2 {
extern const HalfKernels half_kernels[2];
}
namespace isa_avx512 {
extern const HalfKernels half_kernels[2];
}

}  // namespace lockstep
