// Collectives over MPI messages: across nodes, or on one node without shared memory. MPI promises neither the order of
// a sum nor equal bits on all ranks, so the order is ours (comm/sum_tree.h): each rank sums a slice, then slices are
// exchanged.
#pragma once

#include <mpi.h>

#include <limits>

#include "comm/communicator.h"
#include "comm/mpi/exchange.h"
#include "comm/mpi/meeting.h"
#include "comm/rounded_sums.h"

namespace lockstep {

struct MpiOptions {
  double timeout_seconds = 120;
  const Activity* activity = nullptr;  // of this rank, for messages; null: the communicator's own
  size_t chunk_limit =
      std::numeric_limits<int>::max();  // elements in one MPI call: its counts are ints; tests set it low
};

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm, const MpiOptions& options = {});  // collective; duplicates comm
  // Leaving because of an exception ends the other ranks' waits.
  ~MpiCommunicator() override;

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return meeting_.rank(); }
  int size() const override { return meeting_.size(); }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override;
  void all_reduce(std::span<double> values, ReduceOp op) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override;
  void barrier() override;

  // For ranks that wait for each other elsewhere, on a GPU: looks for messages of failing ranks without waiting, and
  // answers those who ask who is still there. Throws PeerFailure once a rank gave up.
  void check_peers() { meeting_.check_peers(); }
  // Asks all ranks: "rank 3", of those that do not answer. Takes a second.
  std::string missing_ranks() { return meeting_.missing_ranks(); }
  // Returns when all ranks are here with the same values, else throws PeerFailure.
  void meet(Collective kind, uint64_t count, uint64_t where) { meeting_.meet(kind, count, where); }

  uint64_t bytes_sent() const { return exchange_.bytes_sent(); }  // by this rank since the start, without headers

 private:
  // What the first round of a sum sends also says which sum it is.
  struct Round;
  void gather(const Round& round, const std::byte* mine, size_t bytes);
  void scatter(const Round& round, const std::byte* mine, size_t element_bytes);
  void sum_gathered(const Round& round);
  void sum_slices(const Round& round);
  void sum_gathered_in(WireFormat wire, const Round& round);
  void sum_slices_in(WireFormat wire, const Round& round);

  int exceptions_;
  const Activity* activity_;
  size_t chunk_limit_;
  size_t round_limit_;  // elements of an array that are exchanged through the slots at a time
  mpi::Meeting meeting_;
  mpi::Exchange exchange_;
  PackedSums packed_sums_;
  Buffer packing_;                          // a round, packed
  std::vector<const float*> arrays_;        // by rank, into the meeting's slots
  std::vector<const double*> doubles_;      // likewise
  std::vector<const uint16_t*> packed_;     // likewise
  std::vector<mpi::Piece> slices_;          // of a round, by rank
  std::vector<const std::byte*> gathered_;  // what each rank sent to this one, or its own, by rank
};

}  // namespace lockstep
