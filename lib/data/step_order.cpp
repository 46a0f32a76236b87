#include "data/step_order.h"

#include <utility>

#include "core/error.h"

namespace lockstep {

StepOrder::StepOrder(const DataPlanSpec& spec, int64_t first, int64_t held, SamplerSettings settings)
    : spec_(spec), plan_(spec), first_(first), held_(held), sampler_(spec, first, std::move(settings)) {
  if (held < 1 || first > spec.world_size - held)
    throw_error("ranks {} to {} of {} don't exist", first, first + held - 1, spec.world_size);
}

void StepOrder::set_epoch(int64_t epoch, int64_t position) {
  plan_ = EpochPlan(spec_, position);
  sampler_.set_epoch(epoch);
  sampler_.seek(position);
  step_ = rank_ = micro_step_ = 0;
}

std::span<const int64_t> StepOrder::next() {
  const int64_t window = plan_.window_size(step_);
  const int64_t rank = first_ + rank_, ahead = micro_step_;
  if (++micro_step_ < window) return sampler_.peek(rank, ahead);
  micro_step_ = 0;
  if (++rank_ < held_) return sampler_.peek(rank, ahead);
  rank_ = 0;
  ++step_;
  const auto rows = sampler_.peek(rank, ahead);
  sampler_.skip(window);
  return rows;
}

}  // namespace lockstep
