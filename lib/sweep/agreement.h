// Whether trials with equal global batches train alike: their loss curves laid over each other over the samples seen.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct LossCurve {
  int64_t global_batch = 1;
  std::string others;                            // every other parameter: only equal ones are compared
  std::vector<std::pair<int64_t, double>> loss;  // by samples seen, ascending
};

struct Agreement {
  int64_t global_batch = 1;
  std::vector<size_t> curves;  // two or more
  int64_t points = 0;          // numbers of samples at which all of them have a finite loss
  double difference = 0;       // the largest between two of them
  int64_t at_samples = 0;      // there
  size_t high = 0, low = 0;    // those two
};

// One for each group of curves that are to agree.
std::vector<Agreement> agreements(const std::vector<LossCurve>& curves);

}  // namespace lockstep
