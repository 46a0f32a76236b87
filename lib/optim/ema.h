// An exponential moving average of the weights, evaluated in their place: after every optimizer step
//   average += (1 - decay) (weights - average),
// starting from the weights at construction time, without bias correction (Polyak, Juditsky 1992, with a window). The
// running statistics of batch norms are moving averages already and are evaluated as they are.
#pragma once

#include <span>

#include "backend/memory.h"
#include "backend/optimizer_ops.h"
#include "core/buffer.h"
#include "nn/parameter_store.h"

namespace lockstep {

class WeightAverage {
 public:
  // `weights`: the parameter arena, which outlives this, in `memory`. Throws Error: decay outside [0, 1).
  WeightAverage(double decay, std::span<float> weights, const OptimizerOps& ops, const Memory& memory = host_memory());

  void restart();  // from the weights as they are
  void update();   // after an optimizer step; allocates nothing
  // Exchanges average and weights; a second call exchanges them back.
  void swap();
  std::span<float> values() const { return average_.as<float>(); }

 private:
  double decay_;
  std::span<float> weights_;
  const OptimizerOps& ops_;
  const Memory& memory_;
  Buffer average_;
};

// The average stands in the weights' place while this lives. null: nothing happens.
class AveragedWeights {
 public:
  AveragedWeights(WeightAverage* average, ParameterStore& store) : average_(average), store_(store) { swap(); }
  ~AveragedWeights() { swap(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void swap() {
    if (average_ == nullptr) return;
    average_->swap();
    store_.values_changed();
  }
  WeightAverage* average_;
  ParameterStore& store_;  // whose weights these are
};

}  // namespace lockstep
