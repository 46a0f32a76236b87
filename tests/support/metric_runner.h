// Feeds samples to validation metrics in batches, as the evaluator does.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/metric_oracle.h"
#include "train/metrics/table.h"

namespace lockstep::test {

inline MetricContext classes_context(int64_t outputs) { return {.outputs = outputs}; }
inline MetricContext regression_context(int64_t outputs) {
  return {.outputs = outputs, .targets = TargetKind::values, .loss = LossSpec::Kind::mse};
}

inline std::vector<MetricValue> run_metrics(const std::vector<std::string>& names, const MetricContext& context,
                                            const Samples& mine, int64_t batch, Communicator& communicator) {
  Samples copy = mine;  // views are not const
  std::vector<MetricValue> values;
  for (const auto& metric : make_metrics(names, context)) {
    metric->reset();
    for (int64_t first = 0; first < copy.rows; first += batch) {
      const int64_t count = std::min(batch, copy.rows - first);
      const Shape shape{count, copy.outputs};
      const TensorView output{copy.scores.data() + first * copy.outputs, {shape}};
      const TensorView target = context.targets == TargetKind::labels
                                    ? TensorView{copy.labels.data() + first, {Shape{count}, 1, DType::i64}}
                                    : TensorView{copy.values.data() + first * copy.outputs, {shape}};
      metric->accumulate(output, target);
    }
    metric->reduce(communicator);
    for (MetricValue& value : metric->values()) values.push_back(std::move(value));
  }
  return values;
}

inline const MetricValue* find(const std::vector<MetricValue>& values, const std::string& name) {
  const auto found = std::ranges::find_if(values, [&](const MetricValue& value) { return value.name == name; });
  return found == values.end() ? nullptr : &*found;
}

}  // namespace lockstep::test
