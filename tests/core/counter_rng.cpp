// Keys and words of the counter-based streams: distinct, order-sensitive and spread over all bits.
#include "core/counter_rng.h"

#include <doctest/doctest.h>

#include <bit>
#include <set>

using lockstep::counter_word;
using lockstep::mix_key;

TEST_CASE("keys of all small component values are distinct") {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t rank = 0; rank < 16; ++rank) {
      for (uint64_t step = 0; step < 64; ++step) {
        for (uint64_t layer = 0; layer < 16; ++layer) keys.insert(mix_key(seed, rank, step, layer));
      }
    }
  }
  CHECK_EQ(keys.size(), 8U * 16U * 64U * 16U);
}

TEST_CASE("components that trade places give another key") {
  CHECK_NE(mix_key(1, 2, 3, 4), mix_key(2, 1, 3, 4));
  CHECK_NE(mix_key(1, 2, 3, 4), mix_key(1, 3, 2, 4));
  CHECK_NE(mix_key(1, 2, 3, 4), mix_key(1, 2, 4, 3));
  CHECK_NE(mix_key(0, 1, 0, 0), mix_key(1, 0, 0, 0));
}

TEST_CASE("one changed bit of any component changes about half of the key") {
  double changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = 1ULL << bit;
    changed += std::popcount(mix_key(9, 8, 7, 6) ^ mix_key(9 ^ flip, 8, 7, 6));
    changed += std::popcount(mix_key(9, 8, 7, 6) ^ mix_key(9, 8 ^ flip, 7, 6));
    changed += std::popcount(mix_key(9, 8, 7, 6) ^ mix_key(9, 8, 7 ^ flip, 6));
    changed += std::popcount(mix_key(9, 8, 7, 6) ^ mix_key(9, 8, 7, 6 ^ flip));
  }
  CHECK(changed / 256 == doctest::Approx(32).epsilon(0.05));
}

TEST_CASE("words of two neighbouring streams are all different") {
  std::set<uint64_t> words;
  for (uint64_t index = 0; index < 10000; ++index) {
    words.insert(counter_word(mix_key(1, 0, 0, 0), index));
    words.insert(counter_word(mix_key(1, 0, 0, 1), index));
  }
  CHECK_EQ(words.size(), 20000U);
}

TEST_CASE("every bit of a stream is set half of the time") {
  const uint64_t key = mix_key(3, 1, 4, 1);
  for (int bit = 0; bit < 64; ++bit) {
    int set = 0;
    for (uint64_t index = 0; index < 10000; ++index) set += static_cast<int>((counter_word(key, index) >> bit) & 1U);
    CHECK(set == doctest::Approx(5000).epsilon(0.05));
  }
}

TEST_CASE("the stream is SplitMix64") {
  // First outputs of the published generator for seed 1234567.
  CHECK_EQ(counter_word(1234567, 0), 6457827717110365317ULL);
  CHECK_EQ(counter_word(1234567, 1), 3203168211198807973ULL);
  CHECK_EQ(counter_word(1234567, 2), 9817491932198370423ULL);
}
