// How replicas come to one set of running statistics, after each has tracked those of its own samples.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "dist/batch_norm_sync.h"
#include "nn/parameter_store.h"

namespace lockstep {

class RunningStatistics {
 public:
  // The buffers of `store`, which start equal on all ranks.
  RunningStatistics(BatchNormPolicy policy, ParameterStore& store, Communicator& communicator)
      : policy_(policy), store_(store), communicator_(communicator) {}

  void trained_on(int64_t own_samples) { samples_ += own_samples; }
  // Makes the buffers the same on all ranks, before they are evaluated or saved; a second call changes nothing.
  // Collective; nothing happens without buffers.
  // rank0: its buffers. average: the mean over ranks, weighted by the samples each has trained on since the last call,
  // also of their variances (what lies between the ranks' means is not in them, as it is in no batch that a rank saw);
  // a rank without samples does not count; num_batches_tracked is the largest. sync: they are the same already.
  void agree();

 private:
  void average();

  BatchNormPolicy policy_;
  ParameterStore& store_;
  Communicator& communicator_;
  int64_t samples_ = 0;
};

}  // namespace lockstep
