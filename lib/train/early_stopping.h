// When a run that no longer gets better ends: decided from one reduced value after each evaluation.
#pragma once

#include <cstdint>
#include <limits>

#include "core/state.h"
#include "train/config.h"

namespace lockstep {

class EarlyStopping {
 public:
  // The config's metric is one of watchable_metrics(); without a mode its own direction counts.
  explicit EarlyStopping(const EarlyStoppingConfig& config);
  // True: this was the evaluation number `patience` in a row without progress. NaN is none. With min_delta the value to
  // beat moves only when it is beaten by more than that, as in Keras and Lightning.
  bool observe(double value);
  State state() const;
  void restore(const State& state);

 private:
  bool larger_is_better_;
  double min_delta_;
  int64_t patience_, without_progress_ = 0;
  double to_beat_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace lockstep
