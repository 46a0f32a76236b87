// Counter-based randomness: a value is a pure function of its key and index, so it cannot depend on timing, threads or
// world size. Private streams (dropout, augmentation) use it; what must equal PyTorch uses core/rng.h.
// Not for lib/backend/cpu/isa, whose files may share no inline code: there the key arrives as an argument.
#pragma once

#include <cstdint>

namespace lockstep {

// The SplitMix64 output function: a bijection of 64-bit words in which every input bit moves every output bit.
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Word `index` of the stream `key`: the SplitMix64 sequence, entered anywhere. Words of one stream are all different.
constexpr uint64_t counter_word(uint64_t key, uint64_t index) {
  return mix_bits(key + (index + 1) * 0x9e3779b97f4a7c15ULL);
}

// The key of one stream, from (seed, virtual rank, step, layer). Keys that differ in one component only are always
// different; any others collide with probability 2^-64. The order of the components matters.
constexpr uint64_t mix_key(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t key = counter_word(seed, 0);
  key = counter_word(key ^ a, 1);
  key = counter_word(key ^ b, 2);
  return counter_word(key ^ c, 3);
}

}  // namespace lockstep
