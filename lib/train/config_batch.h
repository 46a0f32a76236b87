// The arithmetic of batch, ranks and accumulation, and the check of world_size against the launch.
#pragma once

#include <cstdint>
#include <string>

#include "train/config.h"

namespace lockstep {

struct BatchArithmetic {
  int64_t batch_size = 0;  // samples per (virtual) rank and micro-step
  int64_t replicas = 1;    // train.virtual_ranks, or else world_size
  bool virtual_ranks = false;
  int64_t accumulate = 1;
  int64_t global_batch_size = 0;  // samples per optimizer step
  // "global batch 64 = batch_size 16 x world_size 2 x accumulate 2"
  // "global batch 64 = batch_size 16 x virtual_ranks 4 x accumulate 1"
  std::string line() const;
};

// Throws Error: global_batch_size doesn't divide by replicas x accumulate, or the product overflows.
BatchArithmetic resolve_batch(const TrainConfig& train, int64_t world_size);
// Throws Error where the config names a world_size and another number of ranks was launched.
void check_world_size(const Config& config, int64_t launched);

}  // namespace lockstep
