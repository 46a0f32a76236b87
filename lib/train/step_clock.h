// Where the time of a step goes, on each rank: data, forward, backward, communication that backward did not hide,
// optimizer. Every 16th step is measured and each one that is told of, so that reading the clock costs nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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

  // settle: returns when the device has done what it was asked for; called in steps that are measured, for else the
  // host's time would say nothing of the device's.
  explicit StepClock(std::function<void()> settle) : settle_(std::move(settle)) {}

  // The phases of steps that are traced go there, too. settles: waiting for the device would change what is traced, so
  // these steps are not measured.
  void trace(TraceRow* row, bool settles) {
    trace_ = row;
    settles_ = settles;
  }

  void begin_step(int64_t step, bool is_told) {
    const bool traced = trace_ != nullptr && trace_->on();
    if (traced) last_traced_ = trace_now();
    measuring_ = (is_told || step % kEvery == 0) && !(traced && settles_);
    if (!measuring_) return;
    settle_();
    ++steps_;
    last_ = Clock::now();
  }
  // What has passed since the step's start, or the lap before, was this phase.
  void lap(StepPhase phase) {
    if (trace_ != nullptr && trace_->on()) trace_lap(phase);
    if (!measuring_) return;
    settle_();
    const Clock::time_point now = Clock::now();
    seconds_[static_cast<size_t>(phase)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

  // The ranks' laps travel with sums that are made anyway: appends a place for each rank's, all but this one's zero.
  void append_to(std::vector<double>& sums, int rank, int world_size) const;
  // Reads them back from the end of the sums, and starts anew.
  TimeSplit take_from(std::span<const double> sums, int world_size);

 private:
  void trace_lap(StepPhase phase);

  using Clock = std::chrono::steady_clock;
  std::function<void()> settle_;
  bool measuring_ = false;
  int64_t steps_ = 0;
  std::array<double, kStepPhases.size()> seconds_{};
  Clock::time_point last_;
  TraceRow* trace_ = nullptr;
  bool settles_ = false;
  int64_t last_traced_ = 0;
};

}  // namespace lockstep
