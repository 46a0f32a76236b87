// Someone who wants to see how the sums go on that a rank started (Communicator::start_sum): for traces.
#pragma once

namespace lockstep {

// Hears of a rank's sums one after another, in their order, from within calls of the communicator.
class SumWatch {
 public:
  virtual ~SumWatch() = default;
  virtual void sum_begins() = 0;  // the next one, of which nothing was done before: it waited for finish_sums
  virtual void sum_ends() = 0;    // this rank has done its part of it
};

}  // namespace lockstep
