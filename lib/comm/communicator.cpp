#include "comm/communicator.h"

namespace lockstep {

void Communicator::finish_sums() {
  const uint64_t now = activity_.word();
  for (const WaitingSum& sum : waiting_sums_) {
    activity_.set_word(sum.activity);
    if (sum_watch_ != nullptr) sum_watch_->sum_begins();
    all_reduce_sum_in(sum.wire, sum.values);
    if (sum_watch_ != nullptr) sum_watch_->sum_ends();
  }
  waiting_sums_.clear();
  activity_.set_word(now);
}

void Communicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  round_to(wire, values);
  all_reduce_sum(values);
  round_to(wire, values);
}

void Communicator::start_sum_in(WireFormat wire, std::span<float> values) {
  if (wire == WireFormat::fp32) return start_sum(values);
  defer_sum(wire, values);
}

}  // namespace lockstep
