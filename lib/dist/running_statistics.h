// The model's buffers (running means and variances) of each virtual rank that this rank stands for. The graph works on
// the store's buffers; those of the virtual rank whose turn it is are moved in and out. With one virtual rank a rank
// nothing is moved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "dist/virtual_ranks.h"
#include "nn/parameter_store.h"

namespace lockstep {

class RunningStatistics {
 public:
  RunningStatistics(ParameterStore& store, const VirtualRanks& ranks);

  // All virtual ranks take over what the store holds.
  void reset();
  void enter(int64_t piece);  // before the piece's first forward pass
  void leave(int64_t piece);  // after its last

  // Of all pieces, to be kept and put back.
  std::span<float> all();
  // What evaluation and files use, in the store of every rank and for every virtual rank: virtual rank 0's, as
  // PyTorch's DDP keeps rank 0's. Collective.
  void agree(Communicator& communicator);

 private:
  std::span<float> of(int64_t piece) { return std::span(kept_).subspan(static_cast<size_t>(piece) * size_, size_); }

  ParameterStore& store_;
  size_t size_;
  std::vector<float> kept_;  // empty with one virtual rank a rank: they are the store's
};

}  // namespace lockstep
