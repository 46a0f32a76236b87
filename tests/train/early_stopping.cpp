// When early stopping gives up, and which model is the best.
#include "train/early_stopping.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "train/best_model.h"

using namespace lockstep;

namespace {

// The index of the value after which the run ends; -1: never.
int ends_at(EarlyStopping& rule, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (rule.observe(values[i])) return static_cast<int>(i);
  }
  return -1;
}

int ends_at(const EarlyStoppingConfig& config, const std::vector<double>& values) {
  EarlyStopping rule(config);
  return ends_at(rule, values);
}

const double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("patience counts evaluations in a row without progress") {
  CHECK_EQ(ends_at({.patience = 1}, {3, 2, 2}), 2);
  CHECK_EQ(ends_at({.patience = 2}, {3, 2, 2.5, 1, 2, 2, 0}), 5);
  CHECK_EQ(ends_at({.patience = 3}, {3, 3, 3}), -1);
  CHECK_EQ(ends_at({.patience = 3}, {3, 3, 3, 3}), 3);
}

TEST_CASE("the direction is the metric's own unless the mode says otherwise") {
  CHECK_EQ(ends_at({.metric = "val.accuracy", .patience = 1}, {0.1, 0.2, 0.3, 0.25}), 3);
  CHECK_EQ(ends_at({.metric = "val.accuracy", .patience = 1, .mode = "min"}, {0.1, 0.2}), 1);
  CHECK_EQ(ends_at({.metric = "val.loss", .patience = 1, .mode = "max"}, {0.1, 0.2, 0.1}), 2);
}

TEST_CASE("progress is more than min_delta from the best") {
  CHECK_EQ(ends_at({.patience = 2, .min_delta = 0.5}, {3, 2.75, 2.5}), 2);
  CHECK_EQ(ends_at({.patience = 2, .min_delta = 0.5}, {3, 2.75, 2.25, 2}), -1);
}

TEST_CASE("NaN is no progress and the first number is") {
  CHECK_EQ(ends_at({.patience = 2}, {kNan, kNan}), 1);
  CHECK_EQ(ends_at({.patience = 2}, {kNan, 5, kNan, 4, kNan, kNan}), 5);
  CHECK_EQ(ends_at({.patience = 2}, {std::numeric_limits<double>::infinity(), 5, 4, 3}), -1);
}

TEST_CASE("the best model is the first of the best value") {
  const auto best_of = [](const std::string& metric, std::optional<std::string> mode,
                          const std::vector<double>& values) {
    BestModel model(metric, mode);
    CHECK_EQ(model.best().metric, metric);
    for (size_t i = 0; i < values.size(); ++i) {
      if (model.better(values[i])) model.set(values[i], static_cast<int64_t>(10 * i));
    }
    if (model.best().step >= 0) CHECK_EQ(model.best().value, values[static_cast<size_t>(model.best().step / 10)]);
    return model.best().step;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_EQ(best_of("val.mse", {}, {3, 1, 2, 1}), 10);
  CHECK_EQ(best_of("val.f1", {}, {3, 1, 4, 4}), 20);
  CHECK_EQ(best_of("val.f1", "min", {3, 1, 4, 4}), 10);
  CHECK_EQ(best_of("val.loss", {}, {kNan, infinity, 2, kNan, 1.9999}), 40);
  CHECK_EQ(best_of("val.loss", {}, {infinity, infinity}), 0);
  CHECK_EQ(best_of("val.loss", {}, {kNan, kNan}), -1);
}
