#include "optim/ema.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

WeightAverage::WeightAverage(double decay, std::span<float> weights, const OptimizerOps& ops,
                             const std::function<Buffer(size_t bytes)>& allocate)
    : decay_(decay), weights_(weights), ops_(ops), average_(allocate(weights.size_bytes())) {
  if (!(decay >= 0 && decay < 1)) throw_error("train.ema: expected a number in [0, 1), found {}", decay);
  restart();
}

void WeightAverage::restart() { std::ranges::copy(weights_, values().begin()); }

void WeightAverage::update() {
  ops_.lerp(weights_.size(), values().data(), weights_.data(), static_cast<float>(1 - decay_));
}

void WeightAverage::swap() { std::ranges::swap_ranges(weights_, values()); }

}  // namespace lockstep
