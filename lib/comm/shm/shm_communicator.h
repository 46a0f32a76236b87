// Collectives among the ranks of one node through shared memory. Gradients that live in allocate()'s memory are reduced
// where they lie: each rank sums its slice and stores it into every rank's copy, nothing is copied in or out.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_call.h"
#include "comm/shm/shared_reduction.h"
#include "comm/shm/shared_segment.h"
#include "comm/shm/window_shards.h"

namespace lockstep {

struct ShmOptions {
  WaitPolicy wait;
  // When /dev/shm has no room for an allocate(): private memory (all_reduce_sum then copies, shards don't reach it) and
  // a warning, or Error.
  bool private_memory_if_full = false;
  SliceReduction* beyond = nullptr;  // see there; outlives the communicator
};

class ShmCommunicator final : public Communicator {
 public:
  // Collective over `node`, whose ranks share memory; duplicates it. Throws Error on all ranks alike without memory.
  ShmCommunicator(MPI_Comm node, const ShmOptions& options);
  // Leaving because of an exception ends the other ranks' waits.
  ~ShmCommunicator() override;

  std::string_view name() const override { return "shm"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Buffer allocate(size_t bytes) override;
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override;
  void start_sum(std::span<float> values) override { start_sum_in(WireFormat::fp32, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override;
  void poll_sums() override { reduction_.background().poll(); }
  void finish_sums() override;
  void watch_sums(SumWatch* watch) override;
  void all_reduce(std::span<double> values, ReduceOp op) override { reduction_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { reduction_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return reduction_.all_gather(mine);
  }
  void barrier() override { reduction_.barrier(); }
  Shards* shards() override { return options_.beyond == nullptr ? &shards_ : nullptr; }
  SharedReduction& reduction() { return reduction_; }

 private:
  const SharedWindow* window_of(std::span<const float> values) const;  // null: in none
  mpi::OwnedComm node_;
  int rank_, size_;
  ShmOptions options_;
  int exceptions_;
  SharedSegment control_;
  SharedReduction reduction_;
  // Shared with the buffers handed out, which take themselves off the list when they go.
  std::shared_ptr<std::vector<SharedWindow>> windows_;
  uint64_t windows_made_ = 0;
  WindowShards shards_;
};

}  // namespace lockstep
