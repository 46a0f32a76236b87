// When early stopping gives up, and what it calls the best.
#include "train/early_stopping.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace lockstep;

namespace {

// The index of the value after which the run ends; -1: never.
int ends_at(EarlyStopping& rule, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (rule.observe(values[i], static_cast<int64_t>(10 * i))) return static_cast<int>(i);
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

TEST_CASE("the best value is kept with its step") {
  EarlyStopping rule({.metric = "val.mse", .patience = 2});
  CHECK_EQ(rule.best().step, -1);
  CHECK(std::isnan(rule.best().value));
  CHECK_EQ(ends_at(rule, {3, 1, 2, 1}), 3);
  CHECK_EQ(rule.best().metric, "val.mse");
  CHECK_EQ(rule.best().value, 1);
  CHECK_EQ(rule.best().step, 10);
}
