#include "comm/shm/window_shards.h"

#include <cstring>

#include "comm/shm/sum_kernels.h"
#include "core/error.h"

namespace lockstep {

const SharedWindow& WindowShards::reached(std::span<const float> values) const {
  const SharedWindow* window = window_of_(values);
  if (window == nullptr) throw_error("shards: an array of {} floats lies in no window", values.size());
  return *window;
}

void WindowShards::begin(std::span<const float> terms) {
  terms_ = &reached(terms);
  first_term_ = terms_->offset(meeting_.rank(), terms.data());
  meeting_.begin(Collective::sharded_sum, terms.size(), terms_->place(first_term_));
  meeting_.sync();
}

void WindowShards::sum(size_t first, std::span<float> out) {
  for (size_t r = 0; r < arrays_.size(); ++r) arrays_[r] = terms_->floats(static_cast<int>(r), first_term_ + first);
  sum_into(out.data(), arrays_.data(), meeting_.size(), out.size());
}

void WindowShards::store(std::span<const float> values) {
  const SharedWindow& window = reached(values);
  const size_t first = window.offset(meeting_.rank(), values.data());
  for (int r = 0; r < meeting_.size(); ++r)
    if (r != meeting_.rank()) std::memcpy(window.floats(r, first), values.data(), values.size_bytes());
}

}  // namespace lockstep
