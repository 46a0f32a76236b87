#include "data/own_shards.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "data/data_plan.h"

namespace lockstep {

EarlyEnd parse_early_end(std::string_view text) {
  if (text == "join") return EarlyEnd::join;
  if (text == "stop") return EarlyEnd::stop;
  if (text == "error") return EarlyEnd::error;
  throw_error("early_end: expected join, stop or error, found '{}'", text);
}

OwnShards::OwnShards(const DataPlanSpec& spec, int64_t first)
    : left_(spec.own), batch_size_(spec.batch_size), drop_last_(spec.drop_last) {
  if (static_cast<int64_t>(left_.size()) != spec.world_size)
    throw_error("data of {} ranks for {} of them", left_.size(), spec.world_size);
  if (*std::ranges::min_element(left_) < 0 || std::accumulate(left_.begin(), left_.end(), int64_t{0}) != spec.samples)
    throw_error("the ranks' samples do not add up to {}", spec.samples);
  const auto count_usable = [&] {
    usable_ = left_;
    if (drop_last_)
      for (int64_t& samples : usable_) samples = samples / batch_size_ * batch_size_;
  };
  count_usable();
  if (first > 0) {
    skip(first);
    count_usable();
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t rank = 0; rank < world_size(); ++rank) {
    micro_steps_ = std::max(micro_steps_, steps_of(rank));
    least = std::min(least, steps_of(rank));
  }
  if (least == micro_steps_) return;
  if (spec.early_end == EarlyEnd::error) refuse_early_end();
  if (spec.early_end == EarlyEnd::stop) micro_steps_ = least;
}

int64_t OwnShards::steps_of(int64_t rank) const {
  const int64_t samples = usable_[static_cast<size_t>(rank)];
  return samples / batch_size_ + (samples % batch_size_ != 0 ? 1 : 0);
}

int64_t OwnShards::before(int64_t rank, int64_t m) const {
  int64_t positions = 0;
  const int64_t samples = usable_[static_cast<size_t>(rank)];
  return __builtin_mul_overflow(m, batch_size_, &positions) ? samples : std::min(positions, samples);
}

int64_t OwnShards::before(int64_t m) const {
  int64_t sum = 0;
  for (int64_t rank = 0; rank < world_size(); ++rank) sum += before(rank, m);
  return sum;
}

bool OwnShards::some_rank_is_empty() const { return std::ranges::find(usable_, 0) != usable_.end(); }

void OwnShards::skip(int64_t first) {
  int64_t done = 0, beyond = *std::ranges::max_element(usable_) / batch_size_ + 2;  // before(done) <= first < beyond's
  while (beyond - done > 1) {
    const int64_t middle = done + (beyond - done) / 2;
    (before(middle) <= first ? done : beyond) = middle;
  }
  if (before(done) != first) throw_error("sample {} of the epoch is not the end of a micro-step of the ranks", first);
  for (int64_t rank = 0; rank < world_size(); ++rank)
    left_[static_cast<size_t>(rank)] -= std::min(done * batch_size_, left_[static_cast<size_t>(rank)]);
}

void OwnShards::refuse_early_end() const {
  int64_t first = 0, last = 0;
  for (int64_t rank = 1; rank < world_size(); ++rank) {
    if (steps_of(rank) < steps_of(first)) first = rank;
    if (steps_of(rank) > steps_of(last)) last = rank;
  }
  throw_error(
      "rank {} exhausts all its inputs after {} of {} micro-steps: it has {} samples, rank {} has {} "
      "(sampler.early_end: "
      "join goes on with the other ranks, stop ends the epoch there for all)",
      first, steps_of(first), steps_of(last), samples(first), last, samples(last));
}

}  // namespace lockstep
