// Sums of window slices that are announced early and finished late, without a thread that drives them. A rank posts
// that its array is final and goes on computing; whichever rank looks later and finds that all have posted sums its own
// slice into all copies. Waiting is left to the end; the order of addition is that of every sum (comm/sum_tree.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/shm/rendezvous.h"
#include "comm/shm/slice_sum.h"
#include "comm/sum_watch.h"
#include "comm/wire_format.h"

namespace lockstep {

// A rank's progress in shared memory, counted in sums since the start; zero at first and only touched through
// std::atomic_ref. What is summed is written before `posted` tells of it, and kept until all have finished it.
struct alignas(128) SumsLine {
  static constexpr uint64_t in_flight = 31;  // announced sums that nobody has waited for yet, at most
  uint64_t posted;                           // arrays of this rank that are final
  uint64_t summed;                           // sums of which this rank has stored its slice
  struct {
    uint64_t what, where, when;
  } of[in_flight];
};

class BackgroundSums {
 public:
  // lines[r] lie in memory that all ranks share and outlive this object; so does `meeting`, whose numbering, time limit
  // and abort flag the sums share.
  // `beyond` as in SliceSum.
  BackgroundSums(std::vector<SumsLine*> lines, Rendezvous& meeting, SliceReduction* beyond = nullptr);

  // This rank's floats [first, first + count) are final: until finish() they belong to the sum. Waits only when too
  // many sums are in flight. All ranks start the same sums in the same order; no other collective may come between.
  // `wire` as in Communicator::all_reduce_sum_in.
  void start(const SharedWindow& window, size_t first, size_t count, WireFormat wire = WireFormat::fp32);
  // Sums this rank's slices of what all ranks have posted. Never waits.
  void poll();
  // Returns when every started sum is in every copy. Throws PeerFailure as Rendezvous does.
  void finish();
  void watch(SumWatch* watch) { watch_ = watch; }  // see Communicator::watch_sums

 private:
  struct Sum {
    const SharedWindow* window;
    size_t first, count;
    WireFormat wire;
    Call call;
  };
  static uint64_t place(uint64_t number) { return number % SumsLine::in_flight; }
  bool has_posted(int peer, uint64_t number) const;
  bool has_summed(int peer, uint64_t number) const;
  void start_next();
  void finish_next();

  std::vector<SumsLine*> lines_;
  Rendezvous& meeting_;
  SliceSum slice_sum_;
  SumWatch* watch_ = nullptr;
  bool under_way_ = false;                            // the sum after summed_ is being added up
  std::array<Sum, SumsLine::in_flight> sums_{};       // by number modulo
  uint64_t started_ = 0, summed_ = 0, finished_ = 0;  // numbers of the last such sum; sums count from 1
};

}  // namespace lockstep
