#include "comm/shm/slice_sum.h"

#include <algorithm>
#include <cstring>

#include "comm/rounded_sums.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep {

Shard slice_of(size_t first, size_t count, int rank, int size) {
  constexpr size_t line = 64 / sizeof(float);
  const size_t first_line = first / line;
  const size_t lines = (first + count + line - 1) / line - first_line;
  const size_t share = (lines + size - 1) / size;
  const size_t begin = std::clamp((first_line + rank * share) * line, first, first + count);
  const size_t end = std::clamp((first_line + (rank + 1) * share) * line, first, first + count);
  return {begin, end - begin};
}

void SliceSum::start(const SharedWindow& window, size_t first, size_t count, WireFormat wire, const Call& call) {
  const int rank = meeting_.rank(), size = meeting_.size();
  const int owners = beyond_ == nullptr ? size : beyond_->owners(count);
  const Shard slice = rank < owners ? slice_of(first, count, rank, owners) : Shard{};
  if (slice.count == 0) return;
  for (int r = 0; r < size; ++r) arrays_[r] = window.floats(r, slice.first);
  if (beyond_ == nullptr) return sum_into_all_in(wire, arrays_.data(), size, slice.count);
  count_ = slice.count;
  sum_into(arrays_[rank], arrays_.data(), size, count_);
  wire_ = wire;
  beyond_->start({arrays_[rank], count_}, call);
  under_way_ = true;
}

bool SliceSum::advance() {
  if (!under_way_) return true;
  try {
    if (!beyond_->advance()) return false;
  } catch (const PeerFailure& failure) {  // the node's other ranks don't see it
    meeting_.fail(failure.what());
  }
  share();
  return true;
}

void SliceSum::wait() {
  if (!under_way_) return;
  beyond_->wait(meeting_);
  share();
}

void SliceSum::share() {
  float* mine = arrays_[meeting_.rank()];
  round_to(wire_, {mine, count_});
  for (int r = 0; r < meeting_.size(); ++r)
    if (r != meeting_.rank()) std::memcpy(arrays_[r], mine, count_ * sizeof(float));
  under_way_ = false;
}

}  // namespace lockstep
