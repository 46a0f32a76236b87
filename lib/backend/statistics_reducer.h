// How an operation sums numbers over all ranks without knowing that there are ranks: implemented on a communicator,
// handed to the plans that need it (batch normalisation over the whole batch).
#pragma once

#include <span>

namespace lockstep {

class StatisticsReducer {
 public:
  virtual ~StatisticsReducer() = default;
  // In place: every value becomes its sum over all ranks, the same bits on all of them. Collective: every rank calls
  // it equally often, in the same order, with the same number of values. Allocates nothing.
  virtual void sum(std::span<double> values) = 0;
};

}  // namespace lockstep
