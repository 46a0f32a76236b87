// How far a run is, for people who watch: one line with a bar, the epoch, samples per second, the loss and the time
// left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep {

struct ProgressState {
  int64_t step = 0, total_steps = 0;  // done
  int64_t epoch = 0;                  // from 0
  double samples_per_second = 0;      // 0: not known yet
  double seconds_left = -1;           // negative: not known yet
  double loss = 0;                    // of the last step that was logged
};
// "epoch 3 [####      ] 45 %  450/1000 loss 0.1234, 5670/s, 1:23 left"
std::string progress_line(const ProgressState& state);
std::string clock_text(double seconds);  // "1:23", "2:03:04"

// Tells log::status after steps, a few times a second; does nothing where nobody watches.
class Progress {
 public:
  // first_step: those done before this launch.
  void start(int64_t first_step, int64_t total_steps);
  void loss(double loss) { state_.loss = loss; }
  void step(int64_t step, int64_t epoch, int64_t samples);
  void finish();  // takes the line away

 private:
  using Clock = std::chrono::steady_clock;
  bool live_ = false;
  int64_t first_step_ = 0, samples_ = 0;
  ProgressState state_;
  Clock::time_point start_, shown_;
};

}  // namespace lockstep
