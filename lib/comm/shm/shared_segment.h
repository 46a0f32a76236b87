// Memory mapped by all ranks of one node (POSIX shared memory, its name removed as soon as all have it).
#pragma once

#include <mpi.h>

#include <cstddef>

#include "core/buffer.h"

namespace lockstep {

class SharedSegment {
 public:
  // Collective over `node`, whose ranks share memory. parts x bytes_per_rank, zeroed, every page present and touched;
  // rank r's part lies on the memory node where rank r runs. Throws Error on all ranks alike when there is no room.
  SharedSegment(MPI_Comm node, size_t bytes_per_rank);

  std::byte* data() const { return static_cast<std::byte*>(mapped_.data()); }
  std::byte* part(int rank) const { return data() + static_cast<size_t>(rank) * stride_; }

 private:
  Buffer mapped_;  // unmapping is local: it never waits for another rank
  size_t stride_ = 0;
};

// Removes this user's segments on this machine whose creator was killed before it could remove their names; returns how
// many. Every new segment does so first. Names that are in use (locked by their creator) or younger than ten seconds
// stay.
int remove_leftover_segments();

}  // namespace lockstep
