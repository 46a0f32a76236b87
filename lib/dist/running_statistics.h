// The model's buffers (running means and variances): those of each virtual rank while it trains, and how replicas come
// to one set of them. The graph works on the store's buffers; where this rank stands for several virtual ranks, those
// of the one whose turn it is are moved in and out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "dist/batch_norm_sync.h"
#include "dist/virtual_ranks.h"
#include "nn/parameter_store.h"

namespace lockstep {

class RunningStatistics {
 public:
  // The buffers of `store`, which is laid out; all virtual ranks start with what it holds.
  RunningStatistics(BatchNormPolicy policy, ParameterStore& store, const VirtualRanks& ranks,
                    Communicator& communicator);

  void restart();                              // all virtual ranks take over what the store holds
  void enter(int64_t piece);                   // before the piece's first forward pass of a step
  void leave(int64_t piece, int64_t samples);  // after its last; so many samples were trained on
  // Of all pieces, to be kept and put back; the store's memory.
  std::span<float> all();

  // Makes the buffers the same on all ranks, before they are evaluated or saved; a second call changes nothing.
  // Collective; nothing happens without buffers.
  // rank0: those of (virtual) rank 0. average: the mean over (virtual) ranks, weighted by the samples each has trained
  // on since the last call, also of their variances (what lies between the ranks' means is not in them, as it is in no
  // batch that a rank saw); one without samples does not count; num_batches_tracked is the largest. sync: they are the
  // same already.
  void agree();
  // What agree() would make of them, without doing it, on the host: for a checkpoint in the midst of an epoch.
  // Collective.
  std::vector<float> agreed();

  // Of each piece: the samples since the last agreement. With `all`, what the policy `average` goes by.
  std::span<int64_t> samples() { return samples_; }
  BatchNormPolicy policy() const { return policy_; }

 private:
  void average(std::vector<float>& result);
  std::span<float> of(int64_t piece);  // the store's with one virtual rank a rank

  BatchNormPolicy policy_;
  ParameterStore& store_;
  Communicator& communicator_;
  Buffer kept_;                   // by piece; empty with one
  std::vector<int64_t> samples_;  // by piece, since the last agreement
};

}  // namespace lockstep
