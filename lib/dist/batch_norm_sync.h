// Batch normalisation over the ranks: the sums that synchronised statistics need, and how replicas agree on running
// statistics that each has tracked on its own samples.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/statistics_reducer.h"
#include "comm/communicator.h"
#include "nn/parameter_store.h"

namespace lockstep {

// rank0: statistics of the rank's own samples, evaluation with rank 0's running ones (as PyTorch's DDP).
// average: the same, evaluation with the mean over ranks. sync: statistics of all ranks' samples (as SyncBatchNorm).
enum class BatchNormPolicy { rank0, average, sync };
BatchNormPolicy parse_batch_norm_policy(std::string_view name);  // throws Error naming the known ones

class CommunicatorReducer final : public StatisticsReducer {
 public:
  explicit CommunicatorReducer(Communicator& communicator) : communicator_(communicator) {}
  void sum(std::span<double> values) override {
    communicator_.all_reduce(values, ReduceOp::sum);
    ++calls_;
  }
  int64_t calls() const { return calls_; }

 private:
  Communicator& communicator_;
  int64_t calls_ = 0;
};

// Makes the model's buffers the same on all ranks, before evaluation (collective; nothing happens without buffers).
// average: every rank counts equally, however many samples it had, also the ranks' variances (what lies between the
// ranks' means is not in them, as it is not in any batch that a rank saw); num_batches_tracked is the largest. sync:
// they are the same already.
void agree_on_buffers(BatchNormPolicy policy, ParameterStore& store, Communicator& communicator);

}  // namespace lockstep
