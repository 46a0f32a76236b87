// The metrics by name: what eval.metrics accepts, what schedule.metric and train.early_stopping.metric can watch.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/metrics/metric.h"

namespace lockstep {

// What eval.metrics may list, `loss` among them. The loss is always computed, so it has no Metric of its own.
std::vector<std::string> metric_names();
// "val.loss", "val.accuracy", "val.precision_weighted", ...: every single number that a metric may give.
std::vector<std::string> watchable_metrics();
// Whether a watchable metric gets better as it grows.
bool larger_is_better(std::string_view watchable);

// The metrics of `names` in that order, without the loss; no names: the accuracy where the targets are classes.
// Throws Error naming the metric that doesn't suit the targets, the loss or the network's output.
std::vector<std::unique_ptr<Metric>> make_metrics(const std::vector<std::string>& names, const MetricContext& context);

// Throws Error "KEY WATCHED: ..." unless `watched` is val.loss, not of the validation, or a number of one of `metrics`.
void check_watched(const std::string& key, const std::string& watched,
                   const std::vector<std::unique_ptr<Metric>>& metrics);

}  // namespace lockstep
