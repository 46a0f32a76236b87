// What a trace holds of collectives and buckets, on communicators that make sums early, late, or elsewhere.
#include "comm/traced_communicator.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Rows {
  TraceRow communication{256}, compute{256};
  void start() { communication.start(), compute.start(); }
  std::vector<TraceEvent> of(TraceKind kind) const {
    std::vector<TraceEvent> found;
    for (const TraceRow* row : {&communication, &compute})
      for (const TraceEvent& event : row->events())
        if (event.kind == kind) found.push_back(event);
    return found;
  }
};

constexpr size_t kBuckets = 5, kFloats = 1000;

// A step's buckets, with work between them.
void reduce(Communicator& ranks, std::span<float> values) {
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    ranks.activity().bucket(static_cast<int64_t>(bucket));
    ranks.start_sum(values.subspan(bucket * kFloats, kFloats));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ranks.poll_sums();
  }
  ranks.finish_sums();
  ranks.activity().bucket(-1);
}

void check_buckets(const std::vector<TraceEvent>& sums) {
  REQUIRE(sums.size() == kBuckets);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    CHECK(sums[bucket].values[0] == static_cast<int64_t>(bucket));
    CHECK(sums[bucket].values[1] == static_cast<int64_t>(kFloats * sizeof(float)));
    CHECK(sums[bucket].values[2] >= 0);
    CHECK(sums[bucket].begin <= sums[bucket].end);
    if (bucket > 0) CHECK(sums[bucket - 1].end <= sums[bucket].begin);
  }
}

// Sums are queued on a device: nobody here hears of their ends.
class Queue final : public Communicator {
 public:
  std::string_view name() const override { return "queue"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void all_reduce_sum(std::span<float>) override {}
  void start_sum(std::span<float>) override {}
  void finish_sums() override {}
  void all_reduce(std::span<double>, ReduceOp) override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>) override { return {}; }
  void barrier() override {}
};

}  // namespace

TEST_CASE("every bucket is in the trace from its launch to its end and sums are the same" * doctest::timeout(60)) {
  for (const bool in_window : {true, false}) {
    CAPTURE(in_window);
    std::vector<Rows> rows(3);
    std::vector<int64_t> early(3), wrong(3);
    const auto errors = run_ranks(3, [&](Communicator& ranks) {
      const auto rank = static_cast<size_t>(ranks.rank());
      TracedCommunicator traced(ranks, rows[rank].communication, rows[rank].compute);
      const size_t bytes = kBuckets * kFloats * sizeof(float);
      Buffer memory = in_window ? traced.allocate(bytes) : Buffer::host(bytes);
      const std::span<float> values = memory.as<float>();
      for (int round = 0; round < 2; ++round) {  // the first one is not traced
        for (float& value : values) value = static_cast<float>(rank + 1);
        if (round == 1) rows[rank].start();
        const int64_t begin = trace_now();
        reduce(traced, values);
        for (const float value : values) wrong[rank] += value != 6;
        for (const TraceEvent& wait : rows[rank].of(TraceKind::wait)) early[rank] = wait.begin - begin;
      }
    });
    for (const std::string& error : errors) CHECK(error.empty());
    for (size_t rank = 0; rank < 3; ++rank) {
      CHECK(wrong[rank] == 0);
      const std::vector<TraceEvent> sums = rows[rank].of(TraceKind::gradients), waits = rows[rank].of(TraceKind::wait);
      check_buckets(sums);
      REQUIRE(waits.size() == 1);
      CHECK(sums.back().end <= waits[0].end);
      if (in_window) {
        CHECK(sums[0].begin < waits[0].begin);  // beside what was computed
      } else {
        CHECK(sums[0].begin >= waits[0].begin);  // put off until they are waited for, and the trace does not hide it
        CHECK(sums[0].values[2] >= 5'000'000);
      }
    }
  }
}

TEST_CASE("sums that are only queued here take the time of queueing them") {
  Queue queue;
  Rows rows;
  TracedCommunicator traced(queue, rows.communication, rows.compute);
  std::vector<float> values(kBuckets * kFloats);
  rows.start();
  reduce(traced, values);
  const auto sums = rows.of(TraceKind::gradients);
  check_buckets(sums);
  for (const TraceEvent& sum : sums) CHECK(sum.end - sum.begin < 1'000'000'000);
  CHECK(sums.back().end <= rows.of(TraceKind::wait).at(0).begin);
}

TEST_CASE("collectives are in the trace by name with their bytes") {
  Queue queue;
  Rows rows;
  TracedCommunicator traced(queue, rows.communication, rows.compute);
  traced.barrier();
  CHECK(rows.of(TraceKind::collective).empty());
  rows.start();
  std::vector<double> numbers(3);
  std::vector<std::byte> bytes(5);
  traced.all_reduce(numbers, ReduceOp::max);
  traced.broadcast(bytes, 0);
  traced.all_gather(bytes);
  traced.barrier();
  std::vector<float> values(8);
  traced.all_reduce_sum_in(WireFormat::bf16, values);
  const auto events = rows.of(TraceKind::collective);
  REQUIRE(events.size() == 4);
  CHECK(events[0].name == "all_reduce of numbers");
  CHECK(events[0].values[0] == 24);
  CHECK(events[1].name == "broadcast");
  CHECK(events[1].values[0] == 5);
  CHECK(events[2].name == "all_gather");
  CHECK(events[3].name == "barrier");
  const auto sums = rows.of(TraceKind::gradients);
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].values[0] == -1);
  CHECK(sums[0].values[1] == 16);  // as it travels
}
