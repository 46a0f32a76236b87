// Where the time of a step goes, on each rank: data, forward, backward, communication that backward did not hide,
// optimizer. Every 16th step is measured and each one that is told of, so that reading the clock costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/stopwatch.h"
#include "core/trace.h"

namespace lockstep {

enum class StepPhase : uint8_t { data, forward, backward, communication, optimizer };
inline constexpr std::array<std::string_view, 5> kStepPhases{"data", "forward", "backward", "communication",
                                                             "optimizer"};

// Of some steps together: how many, and what each rank spent in each phase of them, in seconds.
struct TimeSplit {
  int64_t steps = 0;
  std::vector<std::array<double, kStepPhases.size()>> ranks;
};

class StepClock {
 public:
  static constexpr int64_t kEvery = 16;

  // settle: returns when the device has done what it was asked for. It is called before moments are read: when they are
  // asked for, or as the next measured step begins.
  StepClock(std::unique_ptr<Stopwatch> watch, std::function<void()> settle)
      : watch_(std::move(watch)), settle_(std::move(settle)) {
    laps_.reserve(64);
  }

  // The phases of steps that are traced go there, too: the host's time.
  void trace(TraceRow* row) { trace_ = row; }
  // The same of what is no phase, since the step's start or the lap before.
  void trace_as(std::string_view name) {
    if (trace_ != nullptr && trace_->on()) trace_lap(name);
  }

  bool measuring() const { return measuring_; }  // this step
  void begin_step(int64_t step, bool is_told) {
    if (trace_ != nullptr && trace_->on()) last_traced_ = trace_now();
    measuring_ = is_told || step % kEvery == 0;
    if (!measuring_) return;
    read();
    ++steps_;
    watch_->mark(0);
  }
  // What has passed since the step's start, or the lap before, was this phase.
  void lap(StepPhase phase) {
    trace_as(kStepPhases[static_cast<size_t>(phase)]);
    if (!measuring_) return;
    laps_.push_back(phase);
    watch_->mark(laps_.size());
  }
  // A recording was started that made the lap (backend/recorder.h), at the same place among the step's laps.
  void repeat_lap(StepPhase phase) {
    if (measuring_) laps_.push_back(phase);
  }
  size_t laps() const { return laps_.size(); }  // of the step, so far

  // The ranks' laps travel with sums that are made anyway: appends a place for each rank's, all but this one's zero.
  void append_to(std::vector<double>& sums, int rank, int world_size);
  // Reads them back from the end of the sums, and starts anew.
  TimeSplit take_from(std::span<const double> sums, int world_size);

 private:
  void read();  // the laps of the last measured step
  void trace_lap(std::string_view name);

  std::unique_ptr<Stopwatch> watch_;
  std::function<void()> settle_;
  bool measuring_ = false;
  int64_t steps_ = 0;
  std::array<double, kStepPhases.size()> seconds_{};
  std::vector<StepPhase> laps_;  // of the last measured step; the n-th ends at the watch's moment n + 1
  TraceRow* trace_ = nullptr;
  int64_t last_traced_ = 0;
};

}  // namespace lockstep
