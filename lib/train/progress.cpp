#include "train/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log.h"

namespace lockstep {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_line(const ProgressState& state) {
  constexpr int64_t width = 10;  // the whole line fits into 80 columns
  const int64_t total = std::max<int64_t>(1, state.total_steps), done = std::min(state.step, total);
  std::string line = fmt::format("epoch {} [{:<{}}] {} %  {}/{} loss {:.4f}", state.epoch + 1,
                                 std::string(static_cast<size_t>(done * width / total), '#'), width, done * 100 / total,
                                 done, total, state.loss);
  if (state.samples_per_second > 0) line += fmt::format(", {:.0f}/s", state.samples_per_second);
  if (state.seconds_left >= 0) line += fmt::format(", {} left", clock_text(state.seconds_left));
  return line;
}

void Progress::start(int64_t first_step, int64_t total_steps) {
  live_ = log::live();
  first_step_ = first_step;
  state_.total_steps = total_steps;
  start_ = shown_ = Clock::now();
}

void Progress::step(int64_t step, int64_t epoch, int64_t samples) {
  if (!live_) return;
  samples_ += samples;
  const Clock::time_point now = Clock::now();
  if (now - shown_ < std::chrono::milliseconds(100) && step < state_.total_steps) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  state_.step = step, state_.epoch = epoch;
  state_.samples_per_second = static_cast<double>(samples_) / seconds;
  state_.seconds_left =
      seconds / static_cast<double>(step - first_step_) * static_cast<double>(state_.total_steps - step);
  log::status(progress_line(state_));
}

void Progress::finish() {
  if (live_) log::status("");
}

}  // namespace lockstep
