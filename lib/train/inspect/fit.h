// The largest batch whose training fits into a number of bytes, as a config that can be used at once.
#pragma once

#include <cstdint>
#include <string>

#include "train/memory_estimate.h"

namespace lockstep {

struct Fit {
  Config config;           // batch_size, or accumulate where there is a global_batch_size; eval.batch_size
  int64_t batch_size = 0;  // per rank and micro-step
  MemoryEstimate estimate;
};

// The largest batch with which every rank stays within `bytes` (memory_estimate.h: without the program itself), up to
// all samples of a rank. A global_batch_size stays as it is and is accumulated, so the batch divides it.
// eval.batch_size is halved until evaluation alone would fit. Error: not even the smallest batch does.
Fit largest_batch(const Config& config, const DataFacts& data, int64_t world_size, uint64_t bytes, Backend& backend);

// "4GiB", "512 MiB", "2000000": bytes. Error: none of these.
uint64_t parse_bytes(const std::string& text);

}  // namespace lockstep
