// What tensor cores make of fp32 numbers where TF32 is permitted: 11 bits, rounded to even.
#pragma once

#include <cstdint>

namespace lockstep::sim {

inline float tf32(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;
  return __builtin_bit_cast(float, (bits + 0xfffU + ((bits >> 13) & 1U)) & ~0x1fffU);
}

}  // namespace lockstep::sim
