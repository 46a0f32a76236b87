#include "optim/ema.h"

#include "core/error.h"

namespace lockstep {

WeightAverage::WeightAverage(double decay, std::span<float> weights, const OptimizerOps& ops, const Memory& memory)
    : decay_(decay), weights_(weights), ops_(ops), memory_(memory), average_(memory.allocate(weights.size_bytes())) {
  if (!(decay >= 0 && decay < 1)) throw_error("train.ema: expected a number in [0, 1), found {}", decay);
  restart();
}

void WeightAverage::restart() { memory_.copy(values(), weights_); }

void WeightAverage::update() {
  ops_.lerp(weights_.size(), values().data(), weights_.data(), static_cast<float>(1 - decay_));
}

void WeightAverage::swap() { ops_.swap(weights_.size(), weights_.data(), values().data()); }

}  // namespace lockstep
