// Virtual ranks: a step cut into V equally shaped pieces whatever the number of ranks, so that the same run has the
// same bits on 1, 2, 4, ... V ranks. A rank stands for V / W consecutive ones and trains them one after another; their
// gradients, losses and statistics are added in one fixed binary tree, whose upper levels are the reduction over ranks.
// A plain run is the case V = W: one virtual rank a rank.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

struct VirtualRanks {
  int64_t count = 1;  // of all ranks together: V
  int64_t first = 0;  // of this rank
  int64_t held = 1;   // by this rank: V / W

  bool one_each() const { return held == 1; }
};

// wanted: train.virtual_ranks, empty for one each. Throws Error unless it is a power of two that `size` divides.
VirtualRanks deal_virtual_ranks(std::optional<int64_t> wanted, int rank, int size);

}  // namespace lockstep
