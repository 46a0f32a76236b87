// The optimizer step of ranks that reach each other's memory (comm/shards.h): each updates its shard of the parameters
// from the sum of all ranks' gradients and stores the result into all copies. The sum is made block by block as it is
// used and never written back; the bits are those of an all-reduce with the whole update on every rank. Xu et al. 2020
// (Automatic Cross-Replica Sharding of Weight Update). Optimizer state, too, is current on one rank a shard only.
#pragma once

#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "optim/optimizer.h"

namespace lockstep {

class ShardedUpdate {
 public:
  // communicator: has shards(), which reach gradients and parameters; outlives this object. arena: floats of gradients,
  // and of the parameters and states that belong to them.
  ShardedUpdate(Communicator& communicator, size_t arena);

  // What is left of groups for an optimizer on this rank: its shard, in blocks that stay in a core's cache from the sum
  // to the update.
  std::vector<ParameterGroup> own_part(std::vector<ParameterGroup> groups) const;

  // Collective, with no other between it and end(), as for Shards. Until then nobody may write gradients or read
  // parameters but step().
  void begin(std::span<const float> gradients) { shards_.begin(gradients); }
  void step(Optimizer& optimizer, std::span<float> parameters);  // made with own_part
  void end() { shards_.end(); }                                  // collective: parameters are new on all ranks

  // Collective: rank 0 gets the shards of an array like the arena, anywhere, from those that own them.
  void gather(std::span<float> values);

 private:
  Communicator& communicator_;
  Shards& shards_;
  const size_t arena_;
  Buffer sum_;  // of a block
};

}  // namespace lockstep
