#include "dist/batch_norm_sync.h"

#include <vector>

#include "core/error.h"
#include "dist/replica_check.h"

namespace lockstep {
namespace {

// In double: the mean of equal values is that value.
void average_buffers(ParameterStore& store, Communicator& communicator) {
  for (size_t id = 0; id < store.buffers().size(); ++id) {
    const std::span<float> values = store.buffer(static_cast<BufferId>(id));
    const bool count = store.buffers()[id].name.ends_with("num_batches_tracked");
    std::vector<double> all(values.begin(), values.end());
    communicator.all_reduce(all, count ? ReduceOp::max : ReduceOp::sum);
    const double divisor = count ? 1.0 : static_cast<double>(communicator.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(all[i] / divisor);
  }
}

}  // namespace

BatchNormPolicy parse_batch_norm_policy(std::string_view name) {
  if (name == "rank0") return BatchNormPolicy::rank0;
  if (name == "average") return BatchNormPolicy::average;
  if (name == "sync") return BatchNormPolicy::sync;
  throw_error("distributed.batch_norm: expected rank0, average or sync, found {}", name);
}

void agree_on_buffers(BatchNormPolicy policy, ParameterStore& store, Communicator& communicator) {
  if (policy == BatchNormPolicy::rank0) broadcast_buffers(store, communicator);
  if (policy == BatchNormPolicy::average) average_buffers(store, communicator);
}

}  // namespace lockstep
