// distributed.sharded_update: whether ranks divide the optimizer step among them (dist/sharded_update.h).
#pragma once

#include <string>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "train/config.h"

namespace lockstep {

// Smaller arenas gain nothing: what is shared out is in a cache of its rank's own (bench/sharded_update).
inline constexpr size_t kLeastShardedBytes = size_t{3} << 19;

// What needs the whole sum of the gradients on every rank, or other ranks' memory where it can't be reached; empty:
// nothing does. The same on all ranks of one config. weight_known: the loss is divided by a number that is known before
// the step.
std::string why_not_sharded(const Config& config, const Backend& backend, Communicator& communicator,
                            bool weight_known);

// Whether to do it among so many ranks and for an arena of so many bytes. Throws Error: sharded_update is on, and there
// is a reason not to; one rank is none, it has nobody to share with.
bool decide_sharding(const Config& config, const std::string& why_not, int ranks, size_t gradient_bytes);

}  // namespace lockstep
