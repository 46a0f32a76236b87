// The collectives of one node, on plain pointers to memory that all ranks share: processes through a mapped segment,
// or threads of a test through the heap. Nothing here allocates after construction, except all_gather's result.
//
// Small arrays go through double-buffered slots: post, then everyone adds everyone's slot, one meeting per call. Large
// arrays lie in a window: meet, each rank sums its slice over all copies and stores it into all copies, meet again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/shm/background_sums.h"
#include "comm/shm/rendezvous.h"
#include "comm/shm/slice_sum.h"

namespace lockstep {

class SharedReduction {
 public:
  static constexpr size_t slot_bytes = 16 << 10;    // arrays up to this size take the one-meeting path ...
  static constexpr size_t direct_bytes = 1 << 10;   // ... those in a window only up to this size (measured)
  static constexpr size_t staging_bytes = 1 << 20;  // what one round of a large array outside any window moves

  // Bytes of shared memory needed; zeroed, aligned to 128, mapped by all ranks and outliving them all.
  static size_t memory_bytes(int size);
  // beyond: what becomes of slices before they are shared; null: nothing. Outlives this object.
  SharedReduction(std::byte* memory, int rank, int size, const WaitPolicy& policy, SliceReduction* beyond = nullptr);

  // Floats of the window, in place; `wire` as in Communicator::all_reduce_sum_in.
  void all_reduce_sum(const SharedWindow& window, size_t first, size_t count, WireFormat wire = WireFormat::fp32);
  void all_reduce_sum(std::span<float> values, WireFormat wire = WireFormat::fp32);  // anywhere
  void all_reduce(std::span<double> values, ReduceOp op);
  void broadcast(std::span<std::byte> bytes, int root);
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine);
  void barrier();
  // Returns when every rank is in this same call, which is not a collective of its own.
  void agree(Collective kind, uint64_t count, uint64_t where);

  // all_reduce_sum of places in windows, while this rank goes on computing; see BackgroundSums.
  BackgroundSums& background() { return background_; }

  Rendezvous& meeting() { return meeting_; }
  uint64_t sequence() const { return meeting_.sequence(); }
  void abort(std::string_view reason) { meeting_.abort(reason); }

 private:
  std::byte* slot(int rank, int parity) const { return regions_[rank] + static_cast<size_t>(parity) * slot_bytes; }
  std::byte* staging(int rank) const { return staging_window_.copies[rank]; }
  void sum_small(std::span<float> values);
  void sum_copied(std::span<float> values, WireFormat wire);
  void sum_lent(std::span<float> values, size_t half, WireFormat wire);
  void sum_slices(const SharedWindow& window, size_t first, size_t count, WireFormat wire);

  Rendezvous meeting_;
  SliceSum slice_sum_;
  BackgroundSums background_;
  std::vector<std::byte*> regions_;
  SharedWindow staging_window_;
  std::vector<float*> arrays_;
  std::vector<const double*> doubles_;
};

}  // namespace lockstep
