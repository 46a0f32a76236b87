// The lower levels of the gradients' binary tree: the pieces of one rank's virtual ranks, added as they come. Like a
// binary counter: piece k finds one partial sum waiting for every trailing 1 bit of k, so log2(pieces) arenas are
// enough, and every sum is that of two neighbouring subtrees of equal size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/memory.h"
#include "backend/optimizer_ops.h"
#include "core/buffer.h"

namespace lockstep {

class PartialSums {
 public:
  // floats: of the gradient arena. pieces: a power of two; memory is made here, of the kind that `ops` compute in.
  PartialSums(size_t floats, int64_t pieces, const OptimizerOps& ops, const Memory& memory = host_memory());

  void restart() { added_ = 0; }
  // The next piece, not the last: becomes scratch.
  void add(std::span<float> piece);
  // For the last piece, part by part: adds what waits for floats [offset, offset + part.size()) of it.
  void complete(std::span<float> part, size_t offset) const;

  size_t arenas() const { return waiting_.size(); }

 private:
  const OptimizerOps& ops_;
  const Memory& memory_;
  std::vector<Buffer> waiting_;  // by level: the sum of 2^level pieces
  uint64_t added_ = 0;
};

}  // namespace lockstep
