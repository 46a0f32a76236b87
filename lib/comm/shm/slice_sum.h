// One rank's part in the sum of an array that every rank of a node has a copy of: it adds up its slice of all copies
// and stores the sum into all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/shards.h"
#include "comm/shm/rendezvous.h"
#include "comm/shm/shared_window.h"
#include "comm/shm/slice_reduction.h"
#include "comm/wire_format.h"

namespace lockstep {

// The part of floats [first, first + count) of a window that `rank` sums: whole cache lines, so no two ranks write one.
Shard slice_of(size_t first, size_t count, int rank, int size);

class SliceSum {
 public:
  // beyond: see SliceReduction; null: the node's sum is the whole sum. Both outlive this object.
  SliceSum(Rendezvous& meeting, SliceReduction* beyond)
      : meeting_(meeting), beyond_(beyond), arrays_(static_cast<size_t>(meeting.size())) {}

  bool has_beyond() const { return beyond_ != nullptr; }
  // Floats [first, first + count) of all copies are final. One sum at a time; it is rounded to `wire`.
  void start(const SharedWindow& window, size_t first, size_t count, WireFormat wire, const Call& call);
  // True when this rank's slice of the sum is in every copy. Never waits.
  bool advance();
  void wait();

 private:
  void share();

  Rendezvous& meeting_;
  SliceReduction* beyond_;
  std::vector<float*> arrays_;  // this rank's slice in every copy
  size_t count_ = 0;
  WireFormat wire_ = WireFormat::fp32;
  bool under_way_ = false;
};

}  // namespace lockstep
