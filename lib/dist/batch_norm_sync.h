// Batch normalisation over the ranks: whose samples the statistics are of, and the sums that synchronised ones need.
// Those sums come in the midst of forward and backward, so buckets must not be launched during backward
// (comm/communicator.h: no other collective between start_sum and finish_sums).
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/statistics_reducer.h"
#include "comm/communicator.h"

namespace lockstep {

// rank0: statistics of the rank's own samples, evaluation with rank 0's running ones (as PyTorch's DDP).
// average: the same, evaluation with their mean over ranks (running_statistics.h). sync: statistics of all ranks'
// samples (as SyncBatchNorm).
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

}  // namespace lockstep
