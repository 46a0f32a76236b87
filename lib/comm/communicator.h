// Collectives over the ranks of a run. Every rank calls every method in the same order with the same sizes; results are
// the same bits on all ranks. Errors (a peer that failed, a wait beyond the time limit) are thrown as Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/activity.h"
#include "comm/shards.h"
#include "comm/sum_watch.h"
#include "comm/wire_format.h"
#include "core/buffer.h"

namespace lockstep {

enum class ReduceOp { sum, min, max };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string_view name() const = 0;  // "serial", "shm", "mpi", ...
  virtual int rank() const = 0;               // 0 .. size()-1
  virtual int size() const = 0;               // world size
  // What this rank is busy with, for the messages of collectives that go wrong. All ranks tell the same.
  virtual Activity& activity() { return activity_; }
  virtual const Activity& activity() const { return activity_; }

  // Zeroed memory in which all_reduce_sum costs least, and which shards() reach, if it can be had (collective; same
  // size on all ranks). Must not outlive this object.
  virtual Buffer allocate(size_t bytes) = 0;
  // In place: values[i] = sum over ranks in float, in the order of comm/sum_tree.h.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  // The same sums, taken out of the way of what is being computed. start_sum: these values are final, and from here to
  // finish_sums nobody else may touch them. poll_sums: does what can be done without waiting. finish_sums: returns when
  // all started sums are done. All ranks start the same sums in the same order, with no other collective between. By
  // default all of it happens in finish_sums.
  virtual void start_sum(std::span<float> values) { defer_sum(WireFormat::fp32, values); }
  virtual void poll_sums() {}
  virtual void finish_sums();
  // Outlives its use here; null: nobody. Sums that are only queued (on a GPU) are not told of.
  virtual void watch_sums(SumWatch* watch) { sum_watch_ = watch; }
  // The calls of sums only queue work on a GPU, nothing of them waits on the host: they can be recorded.
  virtual bool sums_are_queued() const { return false; }
  // Sums of which each rank needs its shard only, where ranks reach each other's memory; null: they don't.
  virtual Shards* shards() { return nullptr; }
  // The run has failed: sums that are under way and would wait for other ranks end, with whatever is in them.
  virtual void give_up() noexcept {}
  // Sums whose addends are rounded to `wire` before they leave their rank, added in float in the same order, and
  // rounded to `wire` once more: where arrays travel they need half the bytes. fp32: exactly the calls above.
  virtual void all_reduce_sum_in(WireFormat wire, std::span<float> values);
  virtual void start_sum_in(WireFormat wire, std::span<float> values);
  // In place; sums in the same order.
  virtual void all_reduce(std::span<double> values, ReduceOp op) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // The bytes of every rank, indexed by rank; lengths may differ.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;
  virtual void barrier() = 0;

 protected:
  // start_sum_in for arrays of which nothing can be done early: finish_sums reduces them one after another.
  void defer_sum(WireFormat wire, std::span<float> values) {
    waiting_sums_.push_back({wire, values, activity_.word()});
  }

  SumWatch* sum_watch() const { return sum_watch_; }

 private:
  struct WaitingSum {
    WireFormat wire;
    std::span<float> values;
    uint64_t activity;  // when it was started
  };
  std::vector<WaitingSum> waiting_sums_;
  Activity activity_;
  SumWatch* sum_watch_ = nullptr;
};

}  // namespace lockstep
