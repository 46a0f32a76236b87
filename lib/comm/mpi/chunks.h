// Cuts a long array into pieces that a call with an int count can take.
#pragma once

#include <algorithm>
#include <cstddef>

namespace lockstep {

struct Chunk {
  size_t first = 0;
  size_t count = 0;
};

constexpr size_t chunk_count(size_t total, size_t limit) { return total / limit + (total % limit != 0 ? 1 : 0); }

// The index-th of chunk_count(total, limit) pieces; limit > 0.
constexpr Chunk chunk(size_t total, size_t limit, size_t index) {
  const size_t first = index * limit;
  return {first, std::min(limit, total - first)};
}

// Share of `rank` when `size` ranks divide `total` elements into runs of equal length (the last ones may be shorter).
constexpr Chunk share_of(size_t total, int rank, int size) {
  const size_t length = (total + static_cast<size_t>(size) - 1) / static_cast<size_t>(size);
  const size_t first = std::min(total, length * static_cast<size_t>(rank));
  return {first, std::min(length, total - first)};
}

}  // namespace lockstep
