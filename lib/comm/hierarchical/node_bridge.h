// Takes a node's slice to the other nodes: its owner adds it to the slices that the owners of the same slice hold
// there, each owner over a communicator of its own, so that all of a node's owners send at once.
#pragma once

#include <mpi.h>

#include <optional>

#include "comm/hierarchical/placement.h"
#include "comm/mpi/tree_exchange.h"
#include "comm/shm/slice_reduction.h"

namespace lockstep {

class NodeBridge final : public SliceReduction {
 public:
  static constexpr size_t slice_bytes = 16 << 10;  // an array is divided among the owners in no smaller slices

  // Collective over world.
  NodeBridge(MPI_Comm world, MPI_Comm node, const Placement& placement, const WaitPolicy& wait);

  int owners(size_t count) const override;
  void start(std::span<float> slice, const Call& call) override;
  bool advance() override;
  void wait(Rendezvous& node) override;
  // Returns when the owners of this rank's slice on the other nodes are in the collective that `node` is in.
  void agree(Rendezvous& node);

 private:
  std::optional<mpi::TreeExchange> exchange_;  // of owners
  int owners_;
  double timeout_seconds_;
  int tests_before_yield_;
};

}  // namespace lockstep
