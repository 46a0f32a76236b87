// A communicator that writes down what it is asked for and hands it on to another one: every collective, and every
// bucket from the begin of its reduction to the end of this rank's part in it. Results are the other's.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "core/trace.h"

namespace lockstep {

class TracedCommunicator final : public Communicator, private SumWatch {
 public:
  // communication: gets the collectives and the sums, one after another. compute: the row of the calling thread, which
  // gets its waits for sums, and the additions that it makes in the midst of backward. All outlive this object.
  TracedCommunicator(Communicator& traced, TraceRow& communication, TraceRow& compute)
      : traced_(traced), communication_(communication), compute_(compute) {
    traced_.watch_sums(this);
    if (Shards* shards = traced_.shards()) shards_.emplace(*shards, communication_, compute_);
  }
  ~TracedCommunicator() override { traced_.watch_sums(nullptr); }

  std::string_view name() const override { return traced_.name(); }
  int rank() const override { return traced_.rank(); }
  int size() const override { return traced_.size(); }
  Activity& activity() override { return traced_.activity(); }
  const Activity& activity() const override { return traced_.activity(); }
  Buffer allocate(size_t bytes) override { return traced_.allocate(bytes); }

  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override;
  void start_sum(std::span<float> values) override { start_sum_in(WireFormat::fp32, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override;
  void poll_sums() override;
  void finish_sums() override;
  Shards* shards() override { return shards_ ? &*shards_ : nullptr; }
  bool sums_are_queued() const override { return traced_.sums_are_queued(); }
  void give_up() noexcept override { traced_.give_up(); }
  void all_reduce(std::span<double> values, ReduceOp op) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override;
  void barrier() override;

 private:
  struct Sum {
    int64_t bucket, bytes, launched, returned;  // returned: from the call that launched it
  };
  void sum_begins() override { free_since_ = trace_now(); }
  void sum_ends() override;
  void add(const Sum& sum, int64_t begin, int64_t end);

  class TracedShards final : public Shards {
   public:
    TracedShards(Shards& traced, TraceRow& communication, TraceRow& compute)
        : traced_(traced), communication_(communication), compute_(compute) {}
    bool reach(std::span<const float> values) const override { return traced_.reach(values); }
    Shard of(size_t count, int rank) const override { return traced_.of(count, rank); }
    void begin(std::span<const float> terms) override;
    void sum(size_t first, std::span<float> out) override { traced_.sum(first, out); }
    void store(std::span<const float> values) override { traced_.store(values); }
    void end() override;

   private:
    Shards& traced_;
    TraceRow& communication_;
    TraceRow& compute_;
    int64_t begun_ = 0, bytes_ = 0;
  };

  Communicator& traced_;
  std::optional<TracedShards> shards_;
  TraceRow& communication_;
  TraceRow& compute_;
  std::vector<Sum> started_;  // since the last finish_sums
  size_t ended_ = 0;          // of them
  int64_t free_since_ = 0;    // the end of the sum before
};

}  // namespace lockstep
