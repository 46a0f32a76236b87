// log.trace: some steps of a run as a Chrome trace, run.dir/trace.json. Every rank writes down what it does into memory
// of its own; after the last of the steps rank 0 makes one file of it, rank by rank, in one time. Off, there is none of
// this. What the rows mean: docs/settings.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/clock_offset.h"
#include "comm/traced_communicator.h"
#include "core/trace.h"

namespace lockstep {

class RunTrace {
 public:
  static constexpr size_t kEvents = 65536;  // of a row: 4 MiB

  // Steps first to last of the run, into `dir`, rank 0's. The communicator outlives this object.
  RunTrace(int64_t first, int64_t last, Communicator& ranks, std::string dir)
      : first_(first), last_(last), ranks_(ranks), dir_(std::move(dir)) {}
  // Throws Error where the run ends before the first of the steps.
  void check(int64_t total_steps) const;

  // The ranks, for everything that shall be in the picture.
  Communicator& communicator() { return ranks_.size() > 1 ? traced_ : ranks_; }
  TraceRow& compute() { return compute_; }
  TraceRow& loader() { return loader_; }

  // Between steps, before this one. Collective where the trace ends.
  void before_step(int64_t step) {
    if (step > last_ && from_ >= 0) end();
    if (step < first_ || step > last_) return;
    if (from_ < 0) begin(step);
    to_ = step;
  }
  // The file, unless it is there: the run has ended, if need be before its last step. Collective. A file that can't be
  // written is a warning.
  void end();

 private:
  void begin(int64_t step);
  std::string own_text(const ClockOffset& clock);
  std::string write(std::string own, std::span<const uint64_t> bytes, const std::string& clocks);

  const int64_t first_, last_;
  Communicator& ranks_;
  const std::string dir_;
  TraceRow compute_{kEvents}, communication_{kEvents}, loader_{kEvents};
  TracedCommunicator traced_{ranks_, communication_, compute_};
  int64_t begun_ = 0;           // at this time
  int64_t from_ = -1, to_ = 0;  // steps that are in it; -1: none yet
  bool done_ = false;
};

}  // namespace lockstep
