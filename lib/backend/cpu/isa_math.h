// fma and square root for the files of backend/cpu/isa/, with internal linkage in each instruction set's namespace.
// Where the instruction set has no fma it is computed in double: the product of two floats is exact there and the sum
// is rounded to odd, so that the last rounding, to float, is the right one. Integer steps only: the loops stay
// vectorised.
#pragma once

#include <cstdint>

namespace lockstep {

namespace isa_generic {
constexpr bool kHardwareFma = false;
}
namespace isa_avx2 {
constexpr bool kHardwareFma = true;
}
namespace isa_avx512 {
constexpr bool kHardwareFma = true;
}

namespace LOCKSTEP_ISA {
namespace {

struct Math {
  static inline float sqrt(float x) { return __builtin_sqrtf(x); }

  static inline float fma(float a, float b, float c) {
    if constexpr (kHardwareFma)
      return __builtin_fmaf(a, b, c);
    else
      return exact_fma(a, b, c);
  }

  static inline float exact_fma(float a, float b, float c) {
    const double product = static_cast<double>(a) * b, addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);  // exact; NaN where sum is not finite
    const uint64_t bits = __builtin_bit_cast(uint64_t, sum), error_bits = __builtin_bit_cast(uint64_t, error);
    const uint64_t magnitude = error_bits & 0x7fffffffffffffff;
    const uint64_t is_nan = (0x7ff0000000000000 - magnitude) >> 63;
    const uint64_t inexact = ((magnitude | (0 - magnitude)) >> 63) & ~is_nan;
    // An even neighbour of an inexact sum moves one place towards the exact value: away from 0 if the signs agree.
    const uint64_t move = inexact & ~bits, opposite = (bits ^ error_bits) >> 63;
    return static_cast<float>(__builtin_bit_cast(double, bits + ((move ^ (0 - opposite)) + opposite)));
  }
};

}  // namespace
}  // namespace LOCKSTEP_ISA
}  // namespace lockstep
