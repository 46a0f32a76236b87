// PyTorch's CPU random generator: MT19937 words turned into the same reals, normals, integers and permutations.
// Stub of the interface; see the implementation for the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace lockstep {

class Generator {
 public:
  explicit Generator(uint64_t seed);  // seeds mt19937 with the low 32 bits
  uint32_t r32();                     // one engine word
  uint64_t r64();                     // two words, the first is the high half
  float uniform_float();              // [0,1), one word
  double uniform_double();            // [0,1), two words
  void uniform(std::span<float> out, double low, double high);            // uniform_(low, high)
  void normal(std::span<float> out, double mean = 0, double std = 1);     // normal_ on a contiguous float tensor
  void normal(std::span<double> out, double mean = 0, double std = 1);
  int64_t random_int64();                                                 // random_() on int64: r64() mod 2^63
  int64_t randint(int64_t low, int64_t high);
  std::vector<int64_t> randperm(int64_t n);
  void bernoulli(std::span<uint8_t> keep, double p);                      // 1 with probability p: double uniform < p
  void discard(uint64_t words);

 private:
  std::mt19937 engine_;
  std::optional<double> cached_double_;
};

}  // namespace lockstep
