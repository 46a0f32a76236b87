// Collectives over MPI messages: across nodes, or on one node without shared memory. MPI promises neither the order of
// a sum nor equal bits on all ranks, so the order is ours (comm/sum_tree.h): each rank sums a slice, then slices are
// exchanged. (Two ranks need no order: addition commutes.)
#pragma once

#include <mpi.h>

#include <limits>

#include "comm/communicator.h"
#include "comm/mpi/meeting.h"

namespace lockstep {

struct MpiOptions {
  double timeout_seconds = 120;
  size_t chunk_limit =
      std::numeric_limits<int>::max();  // elements in one MPI call: its counts are ints; tests set it low
};

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm, const MpiOptions& options = {});  // collective; duplicates comm

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return meeting_.rank(); }
  int size() const override { return meeting_.size(); }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void all_reduce_sum(std::span<float> values) override;
  void all_reduce(std::span<double> values, ReduceOp op) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override;
  void barrier() override;

 private:
  void sum_gathered(std::span<float> values);
  void sum_slices(std::span<float> values);

  mpi::Meeting meeting_;
  size_t chunk_limit_;
  size_t round_limit_;                       // elements of an array that are exchanged through the staging at a time
  Buffer staging_;                           // what the other ranks sent
  std::vector<const float*> arrays_;         // by rank, into the staging
  std::vector<const double*> doubles_;       // likewise
  std::vector<int> counts_, offsets_;        // slices of a chunk, by rank
  std::vector<int> my_counts_, my_offsets_;  // this rank's slice as every rank sends it, one after another
};

}  // namespace lockstep
