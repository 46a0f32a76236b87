// Sums of what a 16-bit wire carries (comm/wire_format.h): added in float in the order of every sum, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/wire_format.h"

namespace lockstep {

// Every array gets the sum of all, rounded to `wire`; no two may overlap. fp32: sum_into_all.
void sum_into_all_in(WireFormat wire, float* const* arrays, int ranks, size_t count);

// Adds packed arrays, a block at a time, so that what is unpacked stays in the first-level cache.
class PackedSums {
 public:
  explicit PackedSums(int ranks);
  // out[i] = the rounded sum over the arrays (one per rank), packed; `out` may be one of them.
  void sum(WireFormat wire, const uint16_t* const* arrays, size_t count, uint16_t* out);

 private:
  std::vector<float> unpacked_;         // a block per rank
  std::vector<const float*> pointers_;  // to them
};

}  // namespace lockstep
