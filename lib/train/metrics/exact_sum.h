// Sums of doubles without rounding, as one long fixed-point number: the result depends on neither the order of the
// terms nor how they are dealt to batches and ranks, so a metric has the same bits on any number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

class ExactSum {
 public:
  static constexpr size_t kDigits = 70;  // of 32 bits: 2^-1152 up to 2^1088, sums of any finite doubles fit

  void add(double term);
  // The exact sum, rounded once to the nearest double. Infinite terms and NaN give what adding them gives.
  double value() const;

 private:
  friend void reduce(std::span<ExactSum> sums, Communicator& communicator);
  void carry();  // brings all digits but the last into [0, 2^32)

  std::array<int64_t, kDigits> digits_{};
  double special_ = 0;       // sum of the terms that are not finite
  int64_t since_carry_ = 0;  // terms; a digit holds 2^30 of them
};

// Each becomes the sum over all ranks (collective, equal numbers of sums on all ranks).
void reduce(std::span<ExactSum> sums, Communicator& communicator);

}  // namespace lockstep
