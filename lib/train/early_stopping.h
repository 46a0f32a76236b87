// When a run that no longer gets better ends, and which step was its best: decided from one reduced value after each
// evaluation.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "train/config.h"

namespace lockstep {

struct BestMetric {
  std::string metric;  // "val.loss"
  double value = std::numeric_limits<double>::quiet_NaN();
  int64_t step = -1;  // the optimizer step after which it was measured; -1: no evaluation gave a number
};

class EarlyStopping {
 public:
  // The config's metric is one of watchable_metrics(); without a mode its own direction counts.
  explicit EarlyStopping(const EarlyStoppingConfig& config);
  // True: this was the evaluation number `patience` in a row without progress. NaN is none. With min_delta the best
  // value moves only when it is beaten by more than that, as in Keras and Lightning.
  bool observe(double value, int64_t step);
  const BestMetric& best() const { return best_; }

 private:
  bool larger_is_better_;
  double min_delta_;
  int64_t patience_, without_progress_ = 0;
  BestMetric best_;
};

}  // namespace lockstep
