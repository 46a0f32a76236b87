// The micro-batches of a rank in the order in which it trains on them: step after step, in a step one (virtual) rank it
// stands for after another, of each its accumulation window.
#pragma once

#include <cstdint>
#include <span>

#include "data/sampler.h"

namespace lockstep {

class StepOrder {
 public:
  // This rank stands for the ranks first ... first + held - 1 of spec.world_size.
  // Error: what Sampler and EpochPlan reject.
  StepOrder(const DataPlanSpec& spec, int64_t first, int64_t held, SamplerSettings settings);

  // Makes the order of an epoch and goes to its start, or on from a position of its list, at which a step ended
  // (EpochPlan's `first`: the rest is dealt anew). Error: negative epoch, position out of range.
  void set_epoch(int64_t epoch, int64_t position = 0);
  // The rows of the next micro-batch, valid until the next call; none where the rank it is for has run out.
  // EpochPlan::micro_steps() x held times an epoch.
  std::span<const int64_t> next();

 private:
  DataPlanSpec spec_;
  EpochPlan plan_;  // from the position on
  int64_t first_, held_;
  Sampler sampler_;  // at the start of the current step
  int64_t step_ = 0, rank_ = 0, micro_step_ = 0;
};

}  // namespace lockstep
