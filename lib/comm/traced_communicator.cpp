#include "comm/traced_communicator.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::string_view kWait = "wait for all_reduce";

int64_t bytes_in(WireFormat wire, std::span<const float> values) {
  return static_cast<int64_t>(values.size() * (wire == WireFormat::fp32 ? sizeof(float) : sizeof(uint16_t)));
}

}  // namespace

// Sums are made one after another: one that was launched while another was being made begins with that one's end.
void TracedCommunicator::add(const Sum& sum, int64_t begin, int64_t end) {
  communication_.add({.name = "all_reduce",
                      .begin = begin,
                      .end = end,
                      .values = {sum.bucket, sum.bytes, begin - sum.launched},
                      .kind = TraceKind::gradients});
}

void TracedCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  if (!communication_.on()) return traced_.all_reduce_sum_in(wire, values);
  const int64_t begin = trace_now();
  traced_.all_reduce_sum_in(wire, values);
  add({activity().bucket(), bytes_in(wire, values), begin, 0}, begin, trace_now());
}

void TracedCommunicator::start_sum_in(WireFormat wire, std::span<float> values) {
  if (!communication_.on()) return traced_.start_sum_in(wire, values);
  const int64_t begin = trace_now();
  const size_t ended = ended_;
  started_.push_back({activity().bucket(), bytes_in(wire, values), begin, 0});
  traced_.start_sum_in(wire, values);
  started_.back().returned = trace_now();
  if (ended_ != ended)  // there was no room for one more
    compute_.add({.name = kWait, .begin = begin, .end = trace_now(), .values = {}, .kind = TraceKind::wait});
}

void TracedCommunicator::sum_ends() {
  if (ended_ == started_.size()) return;  // nobody traced when it was started
  const Sum& sum = started_[ended_++];
  const int64_t now = trace_now();
  add(sum, std::max(sum.launched, free_since_), now);
  free_since_ = now;
}

void TracedCommunicator::poll_sums() {
  const size_t before = ended_;
  const int64_t begin = compute_.on() ? trace_now() : 0;
  traced_.poll_sums();
  if (ended_ != before)
    compute_.add(
        {.name = "sum of a bucket", .begin = begin, .end = trace_now(), .values = {}, .kind = TraceKind::phase});
}

// Sums that nobody told the end of were only queued here: their time is the one it took to launch them.
void TracedCommunicator::finish_sums() {
  {
    const TraceSpan wait(&compute_, TraceKind::wait, kWait);
    traced_.finish_sums();
  }
  for (; ended_ < started_.size(); ++ended_)
    add(started_[ended_], started_[ended_].launched, started_[ended_].returned);
  started_.clear();
  ended_ = 0;
  free_since_ = 0;
}

void TracedCommunicator::TracedShards::begin(std::span<const float> terms) {
  begun_ = trace_now();
  bytes_ = static_cast<int64_t>(terms.size_bytes());
  const TraceSpan wait(&compute_, TraceKind::wait, "wait for gradients");
  traced_.begin(terms);
}

void TracedCommunicator::TracedShards::end() {
  {
    const TraceSpan wait(&compute_, TraceKind::wait, "wait for parameters");
    traced_.end();
  }
  if (!communication_.on()) return;
  communication_.add(
      {.name = "sharded_sum", .begin = begun_, .end = trace_now(), .values = {bytes_}, .kind = TraceKind::collective});
}

void TracedCommunicator::all_reduce(std::span<double> values, ReduceOp op) {
  const TraceSpan span(&communication_, TraceKind::collective, "all_reduce of numbers",
                       static_cast<int64_t>(values.size_bytes()));
  traced_.all_reduce(values, op);
}

void TracedCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  const TraceSpan span(&communication_, TraceKind::collective, "broadcast", static_cast<int64_t>(bytes.size()));
  traced_.broadcast(bytes, root);
}

std::vector<std::vector<std::byte>> TracedCommunicator::all_gather(std::span<const std::byte> mine) {
  const TraceSpan span(&communication_, TraceKind::collective, "all_gather", static_cast<int64_t>(mine.size()));
  return traced_.all_gather(mine);
}

void TracedCommunicator::barrier() {
  const TraceSpan span(&communication_, TraceKind::collective, "barrier");
  traced_.barrier();
}

}  // namespace lockstep
