// One array of every rank of a node, at addresses of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct SharedWindow {
  std::vector<std::byte*> copies;  // by rank; all have the same size and alignment
  size_t bytes = 0;
  uint64_t id = 0;  // the same on all ranks, from 1

  float* floats(int rank, size_t first) const { return reinterpret_cast<float*>(copies[rank]) + first; }
  bool holds(int rank, std::span<const float> values) const {
    const auto* begin = reinterpret_cast<const std::byte*>(values.data());
    return begin >= copies[rank] && begin + values.size_bytes() <= copies[rank] + bytes;
  }
  size_t offset(int rank, const float* value) const { return static_cast<size_t>(value - floats(rank, 0)); }
  // Where floats from `first` on lie, for Fingerprint::where.
  uint64_t place(size_t first) const { return (id << 48) | (first * sizeof(float)); }
};

}  // namespace lockstep
