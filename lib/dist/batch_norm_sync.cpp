#include "dist/batch_norm_sync.h"

#include "core/error.h"

namespace lockstep {

BatchNormPolicy parse_batch_norm_policy(std::string_view name) {
  if (name == "rank0") return BatchNormPolicy::rank0;
  if (name == "average") return BatchNormPolicy::average;
  if (name == "sync") return BatchNormPolicy::sync;
  throw_error("distributed.batch_norm: expected rank0, average or sync, found {}", name);
}

}  // namespace lockstep
