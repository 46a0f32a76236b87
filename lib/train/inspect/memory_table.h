// The memory estimate of a config for several batch sizes side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "train/memory_estimate.h"

namespace lockstep {

// With this many samples per rank and micro-step, whatever the global batch becomes.
Config of_batch_size(Config config, int64_t batch_size);

// A line for each part, a column for each batch size; per rank, then the node of `world_size` ranks.
std::string memory_text(const Config& config, const DataFacts& data, int64_t world_size,
                        std::span<const int64_t> batch_sizes, Backend& backend);

}  // namespace lockstep
