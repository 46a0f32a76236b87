#include "comm/shm/background_sums.h"

#include <atomic>
#include <utility>

#include "comm/wire_format.h"

namespace lockstep {

using Word = std::atomic_ref<uint64_t>;

BackgroundSums::BackgroundSums(std::vector<SumsLine*> lines, Rendezvous& meeting, SliceReduction* beyond)
    : lines_(std::move(lines)), meeting_(meeting), slice_sum_(meeting, beyond) {}

void BackgroundSums::start(const SharedWindow& window, size_t first, size_t count, WireFormat wire) {
  if (started_ - finished_ == SumsLine::in_flight) finish();
  round_to(wire, {window.floats(meeting_.rank(), first), count});
  meeting_.begin(sum_in(wire), count, window.place(first));
  ++started_;
  sums_[place(started_)] = {&window, first, count, wire, {meeting_.sequence(), meeting_.current()}};
  SumsLine& mine = *lines_[meeting_.rank()];
  auto& entry = mine.of[place(started_)];
  Word(entry.what).store(meeting_.current().what, std::memory_order_relaxed);
  Word(entry.where).store(meeting_.current().where, std::memory_order_relaxed);
  Word(entry.when).store(meeting_.current().when, std::memory_order_relaxed);
  Word(mine.posted).store(started_, std::memory_order_release);
}

bool BackgroundSums::has_posted(int peer, uint64_t number) const {
  return Word(lines_[peer]->posted).load(std::memory_order_acquire) >= number;
}

bool BackgroundSums::has_summed(int peer, uint64_t number) const {
  return Word(lines_[peer]->summed).load(std::memory_order_acquire) >= number;
}

void BackgroundSums::poll() {
  while (summed_ < started_) {
    for (int peer = 0; peer < meeting_.size() && !under_way_; ++peer)
      if (!has_posted(peer, summed_ + 1)) return;
    start_next();
    if (!slice_sum_.advance()) return;
    finish_next();
  }
}

void BackgroundSums::finish() {
  while (summed_ < started_) {
    const uint64_t number = summed_ + 1;
    for (int peer = 0; peer < meeting_.size(); ++peer)
      meeting_.wait_until(
          peer, [this, number](int r) { return has_posted(r, number); },
          [this, number](int) { return sums_[place(number)].call; });
    start_next();
    slice_sum_.wait();
    finish_next();
  }
  for (int peer = 0; peer < meeting_.size(); ++peer)
    meeting_.wait_until(
        peer, [this](int r) { return has_summed(r, started_); },
        [this](int r) { return sums_[place(Word(lines_[r]->summed).load(std::memory_order_relaxed) + 1)].call; });
  finished_ = started_;
}

void BackgroundSums::start_next() {
  if (under_way_) return;
  under_way_ = true;
  const uint64_t number = summed_ + 1;
  const Sum& sum = sums_[place(number)];
  for (int r = 0; r < meeting_.size(); ++r) {
    auto& entry = lines_[r]->of[place(number)];
    meeting_.check_agreement(
        sum.call.sequence, sum.call.fingerprint, r,
        {Word(entry.what).load(std::memory_order_relaxed), Word(entry.where).load(std::memory_order_relaxed),
         Word(entry.when).load(std::memory_order_relaxed)});
  }
  slice_sum_.start(*sum.window, sum.first, sum.count, sum.wire, sum.call);
}

void BackgroundSums::finish_next() {
  under_way_ = false;
  ++summed_;
  Word(lines_[meeting_.rank()]->summed).store(summed_, std::memory_order_release);
  if (watch_ != nullptr) watch_->sum_ends();
}

}  // namespace lockstep
