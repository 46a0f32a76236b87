// The counter stream of dropout. Element i survives iff hash(i) >= p * 2^32, where
//   hash(i) = mix(mix(i ^ k0) + k1), mix = "lowbias32": x ^= x>>16; x *= 7feb352d; x ^= x>>15; x *= 846ca68b; x ^=
//   x>>16
// and (k0, k1) are the halves of one word per 2^32 elements (dropout.cpp): a pure function of (key, element), the same
// on every machine, in any order of evaluation, with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct DropoutKernels {
  // keep[i] = hash(i) >= threshold, for i < n <= 2^32; y = x * (keep ? scale : 0). y may be x.
  void (*forward)(size_t n, uint32_t k0, uint32_t k1, uint32_t threshold, float scale, const void* x, void* y,
                  uint8_t* keep);
  // y = x * (keep ? scale : 0), as forward with a given mask and as backward. y may be x.
  void (*apply)(size_t n, float scale, const uint8_t* keep, const void* x, void* y);
};

// By the type of x and y: [0]: fp32, [1]: bf16, [2]: fp16.
namespace isa_generic {
extern const DropoutKernels dropout_kernels[3];
}
namespace isa_avx2 {
extern const DropoutKernels dropout_kernels[3];
}
namespace isa_avx512 {
extern const DropoutKernels dropout_kernels[3];
}

}  // namespace lockstep
