// One builder per metric, for the table (table.cpp). Throw Error for a context that the table's rules can't refuse.
#pragma once

#include <memory>

#include "train/metrics/metric.h"

namespace lockstep {

std::unique_ptr<Metric> make_accuracy(const MetricContext& context);
std::unique_ptr<Metric> make_top_3(const MetricContext& context);
std::unique_ptr<Metric> make_top_5(const MetricContext& context);
std::unique_ptr<Metric> make_top_10(const MetricContext& context);
std::unique_ptr<Metric> make_precision(const MetricContext& context);
std::unique_ptr<Metric> make_recall(const MetricContext& context);
std::unique_ptr<Metric> make_f1(const MetricContext& context);
std::unique_ptr<Metric> make_confusion(const MetricContext& context);
std::unique_ptr<Metric> make_auroc(const MetricContext& context);
std::unique_ptr<Metric> make_mse(const MetricContext& context);
std::unique_ptr<Metric> make_mae(const MetricContext& context);
std::unique_ptr<Metric> make_r2(const MetricContext& context);

// The first largest of a row's scores, as the accuracy counts it; -1 where the row holds a NaN.
int64_t predicted_class(const float* scores, int64_t classes);

}  // namespace lockstep
