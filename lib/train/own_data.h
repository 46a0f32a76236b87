// Data that every rank has for itself: what the ranks must know of each other's before the first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/dataset.h"

namespace lockstep {

// The samples of each rank's data set; empty, and no collective, unless it is per_rank(). Throws the same Error on all
// ranks where the sets are not of one kind (sample shape, targets, classes), naming `what` and the rank that differs.
std::vector<int64_t> own_sizes(const std::string& what, const Dataset& dataset, Communicator& communicator);

}  // namespace lockstep
