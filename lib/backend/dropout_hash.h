// Which elements dropout keeps: one 32-bit hash an element, compared with a threshold, so that every backend draws the
// same masks. Static and constexpr for the reasons that core/half.h gives.
#pragma once

#include <cstdint>

namespace lockstep {

static constexpr uint32_t mix_word(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

// Of element i under the key (k0, k1).
static constexpr uint32_t dropout_hash(uint32_t i, uint32_t k0, uint32_t k1) { return mix_word(mix_word(i ^ k0) + k1); }

}  // namespace lockstep
