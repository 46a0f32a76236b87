// What is done to a slice after the node's copies of it were added up and before every copy gets the sum. Ranks of one
// node have nothing to do; across nodes the slice is added to the other nodes' (comm/hierarchical).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/shm/rendezvous.h"

namespace lockstep {

class SliceReduction {
 public:
  virtual ~SliceReduction() = default;
  // An array of so many floats is divided among the node's ranks 0 .. owners - 1.
  virtual int owners(size_t count) const = 0;
  // Until advance() has said true, the slice belongs to the reduction; one slice at a time. `call` says what is
  // being reduced: it must agree wherever the slice goes.
  virtual void start(std::span<float> slice, const Call& call) = 0;
  virtual bool advance() = 0;  // never waits
  // Returns when the slice is done. Throws PeerFailure after the time limit and when a rank of the node gave up.
  virtual void wait(Rendezvous& node) = 0;
};

}  // namespace lockstep
