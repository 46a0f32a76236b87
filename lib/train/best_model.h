// Which model of a run is the best one so far, by one number of its validations.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace lockstep {

struct BestMetric {
  std::string metric;  // "val.loss"
  double value = std::numeric_limits<double>::quiet_NaN();
  int64_t step = -1;  // the optimizer step after which it was measured; -1: no evaluation gave a number
};

class BestModel {
 public:
  // `metric` is one of watchable_metrics(). mode: min | max; empty: what is better for the metric.
  BestModel(const std::string& metric, const std::optional<std::string>& mode);
  // Any change for the better makes a new best, so of equal ones the first stays. NaN is never the best.
  bool better(double value) const;
  void set(double value, int64_t step) { best_.value = value, best_.step = step; }
  const BestMetric& best() const { return best_; }

 private:
  bool larger_is_better_;
  BestMetric best_;
};

}  // namespace lockstep
