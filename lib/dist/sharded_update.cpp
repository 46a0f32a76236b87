#include "dist/sharded_update.h"

#include <algorithm>

namespace lockstep {

ShardedUpdate::ShardedUpdate(Communicator& communicator, size_t arena)
    : communicator_(communicator),
      shards_(*communicator.shards()),
      arena_(arena),
      sum_(Buffer::host(Shards::block * sizeof(float))) {}

std::vector<ParameterGroup> ShardedUpdate::own_part(std::vector<ParameterGroup> groups) const {
  const Shard mine = shards_.of(arena_, communicator_.rank());
  for (ParameterGroup& group : groups) {
    std::vector<ParameterRange> part;
    for (const ParameterRange& range : group.ranges) {
      const size_t end = std::min(range.offset + range.count, mine.first + mine.count);
      for (size_t at = std::max(range.offset, mine.first); at < end;) {
        const size_t count = std::min(Shards::block - at % Shards::block, end - at);
        part.push_back({at, count});
        at += count;
      }
    }
    group.ranges = std::move(part);
  }
  return groups;
}

void ShardedUpdate::step(Optimizer& optimizer, std::span<float> parameters) {
  const std::span<float> sum = sum_.as<float>();
  const auto gradient = [&](const ParameterRange& range) -> const float* {
    shards_.sum(range.offset, sum.first(range.count));
    return sum.data();
  };
  const auto updated = [&](const ParameterRange& range) {
    shards_.store(parameters.subspan(range.offset, range.count));
  };
  optimizer.step(parameters, gradient, updated);
}

void ShardedUpdate::gather(std::span<float> values) {
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    const Shard theirs = shards_.of(arena_, rank);
    communicator_.broadcast(std::as_writable_bytes(values.subspan(theirs.first, theirs.count)), rank);
  }
}

}  // namespace lockstep
