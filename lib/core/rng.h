// PyTorch's CPU random generator: MT19937 words turned into the same reals, normals, integers and permutations, bit for
// bit, and with the same number of words consumed, so that weights and data order equal those of a PyTorch script.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// "word" = one 32-bit output of the engine. A copy of a Generator continues the same stream on its own.
class Generator {
 public:
  // Same stream as torch.manual_seed(seed): the engine sees the low 32 bits only, so seed and seed + 2^32 are equal;
  // a negative seed s is given as its two's complement, 2^64 + s.
  explicit Generator(uint64_t seed);

  uint32_t r32();           // one word
  uint64_t r64();           // two words, the first is the high half
  float uniform_float();    // [0,1), one word: its low 24 bits * 2^-24
  double uniform_double();  // [0,1), two words: the low 53 bits of r64() * 2^-53
  void discard(uint64_t words);
  uint64_t words() const { return words_; }  // consumed since construction, discarded ones included

  // The stream from here on, as text: a generator that restores it draws the same. Error: not such a text.
  std::string state() const;
  void restore(const std::string& state);

  // tensor.uniform_(low, high) on a float tensor: fma(u, high - low, low), one word an element.
  void uniform(std::span<float> out, double low, double high);

  // tensor.normal_(mean, std) on a contiguous tensor. Fewer than 16 elements: Box-Muller in double, whose unused sine
  // stays cached in the generator for the next short call. 16 or more: blocks of 16 uniforms (one word each, two for
  // double) are transformed in place; where 16 does not divide the size, the last 16 elements are drawn anew.
  void normal(std::span<float> out, double mean = 0, double std = 1);
  void normal(std::span<double> out, double mean = 0, double std = 1);

  int64_t random_int64();  // tensor.random_() on int64: r64() mod 2^63
  int64_t randint(int64_t low,
                  int64_t high);  // [low, high): one word where high - low < 2^28, else two; Error if empty

  // torch.randperm(n): n-1 words. Error: n negative or so large (n >= 214748364) that PyTorch shuffles differently.
  std::vector<int64_t> randperm(int64_t n);
  void randperm_into(std::span<int64_t> out);  // the same into an existing buffer of n elements; allocates nothing

  // tensor.bernoulli_(p): 1 with probability p, two words an element. Dropout keeps where bernoulli(1 - p_drop) is 1.
  void bernoulli(std::span<uint8_t> keep, double p);

 private:
  double normal_double();  // one standard normal of the short path, through the cache

  std::mt19937 engine_;
  std::optional<double> cached_normal_;
  uint64_t words_ = 0;
};

}  // namespace lockstep
