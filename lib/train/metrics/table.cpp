#include "train/metrics/table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "train/metrics/builders.h"

namespace lockstep {
namespace {

enum class Needs { nothing, classes, scores, values };

struct Entry {
  const char* name;
  Needs needs;
  bool larger_is_better;
  std::vector<const char*> numbers;  // the single numbers it gives
  std::unique_ptr<Metric> (*build)(const MetricContext&);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {"loss", Needs::nothing, false, {"loss"}, nullptr},
      {"accuracy", Needs::classes, true, {"accuracy"}, make_accuracy},
      {"top_3", Needs::classes, true, {"top_3"}, make_top_3},
      {"top_5", Needs::classes, true, {"top_5"}, make_top_5},
      {"top_10", Needs::classes, true, {"top_10"}, make_top_10},
      {"precision", Needs::classes, true, {"precision", "precision_weighted"}, make_precision},
      {"recall", Needs::classes, true, {"recall", "recall_weighted"}, make_recall},
      {"f1", Needs::classes, true, {"f1", "f1_weighted"}, make_f1},
      {"confusion", Needs::classes, false, {}, make_confusion},
      {"auroc", Needs::scores, true, {"auroc"}, make_auroc},
      {"mse", Needs::values, false, {"mse"}, make_mse},
      {"mae", Needs::values, false, {"mae"}, make_mae},
      {"r2", Needs::values, true, {"r2"}, make_r2},
  };
  return table;
}

void check_suits(const Entry& entry, const MetricContext& context) {
  const bool labels = context.targets == TargetKind::labels;
  const bool bce = context.loss == LossSpec::Kind::bce_with_logits;
  if (entry.needs == Needs::classes && !labels)
    throw_error("eval.metrics: {} needs class targets (train.loss cross_entropy), found real values", entry.name);
  if (entry.needs == Needs::values && (labels || bce))
    throw_error("eval.metrics: {} needs a regression (train.loss mse, l1 or smooth_l1), found {}", entry.name,
                labels ? "class targets" : "bce_with_logits");
  if (entry.needs == Needs::scores && !labels && !bce)
    throw_error("eval.metrics: {} needs class targets or train.loss bce_with_logits, found a regression", entry.name);
}

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> watchable_metrics() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    for (const char* number : entry.numbers) names.push_back(std::string("val.") + number);
  }
  return names;
}

bool larger_is_better(std::string_view watchable) {
  for (const Entry& entry : entries()) {
    for (const char* number : entry.numbers) {
      if (watchable == std::string("val.") + number) return entry.larger_is_better;
    }
  }
  throw_error("'{}' is no metric of the validation", watchable);
}

std::vector<std::unique_ptr<Metric>> make_metrics(const std::vector<std::string>& names, const MetricContext& context) {
  std::vector<std::string> wanted = names;
  if (wanted.empty() && context.targets == TargetKind::labels) wanted = {"accuracy"};
  std::vector<std::unique_ptr<Metric>> metrics;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find_if(entries(), [&](const Entry& entry) { return entry.name == name; });
    if (found == entries().end())
      throw_error("eval.metrics: unknown metric '{}', known: {}", name, fmt::join(metric_names(), ", "));
    check_suits(*found, context);
    if (found->build != nullptr) metrics.push_back(found->build(context));
  }
  return metrics;
}

void check_watched(const std::string& key, const std::string& watched,
                   const std::vector<std::unique_ptr<Metric>>& metrics) {
  if (!watched.starts_with("val.") || watched == "val.loss") return;
  std::vector<std::string> found{"val.loss"};
  for (const auto& metric : metrics) {
    for (const MetricValue& value : metric->values()) {
      if (value.form != MetricValue::Form::number || value.counts) continue;
      found.push_back("val." + value.name);
      if (found.back() == watched) return;
    }
  }
  throw_error("{} {}: eval.metrics does not compute it here, but {}", key, watched, fmt::join(found, ", "));
}

}  // namespace lockstep
