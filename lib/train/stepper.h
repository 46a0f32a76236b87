// A trainer's bare steps, on and on, from one epoch into the next: for measurements.
#pragma once

#include <cstdint>

#include "train/trainer.h"

namespace lockstep {

class Stepper {
 public:
  explicit Stepper(Trainer& trainer) : trainer_(trainer), steps_per_epoch_(trainer.plan().epoch().steps()) {}

  void run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t k = done_ % steps_per_epoch_;
      if (k == 0) trainer_.begin_epoch(done_ / steps_per_epoch_);
      trainer_.train_step(k);
      ++done_;
    }
  }

 private:
  Trainer& trainer_;
  int64_t steps_per_epoch_, done_ = 0;
};

}  // namespace lockstep
