#include "comm/rounded_sums.h"

#include <algorithm>
#include <cstring>

#include "comm/shm/sum_kernels.h"

namespace lockstep {

static constexpr size_t block = 1024;  // elements

void sum_into_all_in(WireFormat wire, float* const* arrays, int ranks, size_t count) {
  if (wire == WireFormat::fp32) return sum_into_all(arrays, ranks, count);
  sum_into(arrays[0], arrays, ranks, count);
  round_to(wire, {arrays[0], count});
  for (int r = 1; r < ranks && count > 0; ++r) std::memcpy(arrays[r], arrays[0], count * sizeof(float));
}

PackedSums::PackedSums(int ranks) : unpacked_(static_cast<size_t>(ranks) * block) {
  for (int r = 0; r < ranks; ++r) pointers_.push_back(&unpacked_[static_cast<size_t>(r) * block]);
}

void PackedSums::sum(WireFormat wire, const uint16_t* const* arrays, size_t count, uint16_t* out) {
  const size_t ranks = pointers_.size();
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    for (size_t r = 0; r < ranks; ++r) unpack(wire, arrays[r] + at, &unpacked_[r * block], n);
    sum_into(unpacked_.data(), pointers_.data(), static_cast<int>(ranks), n);
    pack(wire, unpacked_.data(), out + at, n);
  }
}

}  // namespace lockstep
