// The two 16-bit storage types and their conversions. fp32 to 16 bits rounds to nearest even, overflows to infinity and
// makes real subnormals; a NaN stays one. Integer arithmetic and one exact fp32 operation: the same bits on every
// machine, whether denormals are flushed or not.
//
// Everything is static, never an inline function or template that the linker could merge: the kernel files under
// backend/cpu/isa/, compiled for several instruction sets, include this too. And constexpr, so that kernels of GPUs may
// call it.
#pragma once

#include <cstdint>

namespace lockstep {

struct Bf16 {  // the upper half of an fp32: 8 bits of precision, the same range
  uint16_t bits;
};
struct F16 {  // IEEE half: 11 bits of precision, largest 65504, smallest normal 2^-14, smallest 2^-24
  uint16_t bits;
};

static constexpr float widen(float x) { return x; }

static constexpr float widen(Bf16 x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16); }

static constexpr float widen(F16 x) {
  constexpr uint32_t rebias = 112U << 23, smallest_normal = 113U << 23;
  const uint32_t sign = (x.bits & 0x8000U) << 16, magnitude = x.bits & 0x7fffU, shifted = magnitude << 13;
  const float subnormal =
      __builtin_bit_cast(float, shifted + smallest_normal) - __builtin_bit_cast(float, smallest_normal);
  const uint32_t normal = shifted + rebias + (magnitude >= 0x7c00U ? rebias : 0U);
  return __builtin_bit_cast(float, sign | (magnitude < 0x400U ? __builtin_bit_cast(uint32_t, subnormal) : normal));
}

static constexpr void narrow(float x, float& to) { to = x; }

static constexpr void narrow(float x, Bf16& to) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16, quiet_nan = (bits >> 16) | 0x40U;
  to.bits = static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

static constexpr void narrow(float x, F16& to) {
  constexpr uint32_t half = 0x3f000000U;  // 0.5F: its last bit is the smallest half
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), sign = bits & 0x80000000U, magnitude = bits ^ sign;
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5F) - half;
  const uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const uint32_t infinite = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const uint32_t finite = magnitude < (113U << 23) ? subnormal : normal;
  to.bits = static_cast<uint16_t>((sign >> 16) | (magnitude >= (143U << 23) ? infinite : finite));
}

}  // namespace lockstep
