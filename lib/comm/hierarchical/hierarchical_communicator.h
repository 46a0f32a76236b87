// Sums in two levels: in a node through shared memory, between nodes by messages. Each rank of a node owns a slice of
// the array: it adds up the node's copies where they lie, adds the other nodes' sums of the same slice, and stores the
// result into all copies of its node. So a node sends 2 (n-1)/n of the array for n nodes, however many ranks it holds.
// Between start_sum and finish_sums the messages travel while this rank computes. Everything else is MpiCommunicator's.
#pragma once

#include <mpi.h>

#include "comm/communicator.h"
#include "comm/hierarchical/node_bridge.h"
#include "comm/hierarchical/placement.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/shm/shm_communicator.h"

namespace lockstep {

class HierarchicalCommunicator final : public Communicator {
 public:
  // Collective over `world`, of which `node` holds the ranks that share memory with this one. Needs a placement without
  // obstacle_to_sums_by_node(). Throws Error on all ranks of a node alike when it has no shared memory.
  HierarchicalCommunicator(MPI_Comm world, MPI_Comm node, const WaitPolicy& wait);

  std::string_view name() const override { return "hierarchical"; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  // Private memory on all ranks, and a warning, when some node has no room for shared memory.
  Buffer allocate(size_t bytes) override;
  void all_reduce_sum(std::span<float> values) override { node_.all_reduce_sum(values); }
  void start_sum(std::span<float> values) override { node_.start_sum(values); }
  // Sums of nodes need all their bits, or the order of addition would show: what travels is not less.
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override { node_.all_reduce_sum_in(wire, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override { node_.start_sum_in(wire, values); }
  void poll_sums() override { node_.poll_sums(); }
  void finish_sums() override { node_.finish_sums(); }
  void watch_sums(SumWatch* watch) override { node_.watch_sums(watch); }
  void all_reduce(std::span<double> values, ReduceOp op) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override;
  void barrier() override;

 private:
  void agree(Collective kind, uint64_t count, uint64_t where);

  MpiCommunicator world_;
  NodeBridge bridge_;
  ShmCommunicator node_;
};

}  // namespace lockstep
