// Moments of a step on the clock of whatever computes: reading the host's would say when a GPU was asked, not when it
// was done, and waiting for it would change what is measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace lockstep {

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Number `index` is the moment at which all that was asked for so far is done. In a recording: at each of its starts.
  virtual void mark(size_t index) = 0;
  // Between two moments that have come: the caller has waited for what was asked for before the later one.
  virtual double seconds(size_t from, size_t to) const = 0;
};

// For calls that return when all is done.
class HostStopwatch final : public Stopwatch {
 public:
  void mark(size_t index) override {
    if (index >= moments_.size()) moments_.resize(index + 1);
    moments_[index] = Clock::now();
  }
  double seconds(size_t from, size_t to) const override {
    return std::chrono::duration<double>(moments_[to] - moments_[from]).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> moments_ = std::vector<Clock::time_point>(64);
};

}  // namespace lockstep
