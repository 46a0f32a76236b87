// The keys eval.metrics and train.early_stopping: what they accept and what they say otherwise.
#include <doctest/doctest.h>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// With a validation set; the sections start in line 3.
std::string refusal_with_val(const std::string& sections) {
  return message("model: {layers: [{linear: 2}]}\ndata: {train: {kind: toy}, val: {kind: toy}}\n" + sections);
}

}  // namespace

TEST_CASE("metrics are a list of known names without repetition") {
  CHECK_EQ(parse("eval: {metrics: [loss, f1, top_5]}\n").eval.metrics, std::vector<std::string>{"loss", "f1", "top_5"});
  CHECK(parse("").eval.metrics.empty());
  CHECK_EQ(refusal("eval: {metrics: [loss, acuracy]}\n"),
           "config.yaml:3:24: eval.metrics.1: expected loss | accuracy | top_3 | top_5 | top_10 | precision | recall | "
           "f1 | confusion | auroc | mse | mae | r2, found 'acuracy'; did you mean 'accuracy'?");
  CHECK_EQ(refusal("eval: {metrics: [f1, loss, f1]}\n"), "config.yaml:3:17: eval.metrics lists f1 twice");
  CHECK(refusal("eval: {metrics: f1}\n").starts_with("config.yaml:3:17: eval.metrics: expected a list [a, b]"));
}

TEST_CASE("early stopping has defaults and may be one word") {
  const std::string val = "data.val={kind: toy}";
  CHECK_FALSE(parse("").train.early_stopping.has_value());
  const auto plain = parse("train: {early_stopping: {}}\n", {val}).train.early_stopping;
  REQUIRE(plain.has_value());
  CHECK_EQ(plain->metric, "val.loss");
  CHECK_EQ(plain->patience, 3);
  CHECK_EQ(plain->min_delta, 0);
  CHECK_FALSE(plain->mode.has_value());
  CHECK_EQ(parse("train: {early_stopping: val.auroc}\n", {val}).train.early_stopping->metric, "val.auroc");
  CHECK_EQ(parse("train: {early_stopping: {mode: min}}\n", {val}).train.early_stopping->mode, "min");
  CHECK_FALSE(parse("train: {early_stopping: null}\n").train.early_stopping.has_value());
}

TEST_CASE("early stopping needs evaluations and sane numbers") {
  CHECK_EQ(refusal("train: {early_stopping: {patience: 2}}\n"),
           "config.yaml:3:25: train.early_stopping needs evaluations, but there is no data.val");
  CHECK_EQ(refusal_with_val("train: {early_stopping: {patience: 2}}\neval: {every: never}\n"),
           "config.yaml:3:25: train.early_stopping needs evaluations, but eval.every is never");
  CHECK_EQ(refusal_with_val("train: {early_stopping: {patience: 0}}\n"),
           "config.yaml:3:36: train.early_stopping.patience: 0 is out of range; expected an integer >= 1");
  CHECK(refusal_with_val("train: {early_stopping: {metric: val.confusion}}\n")
            .starts_with("config.yaml:3:34: train.early_stopping.metric: expected val.loss | val.accuracy | "));
  CHECK(refusal_with_val("train: {early_stopping: {metric: train.loss}}\n")
            .starts_with("config.yaml:3:34: train.early_stopping.metric: expected "));
  CHECK_EQ(refusal_with_val("train: {early_stopping: {metric: val.f1, patience: 1, min_delta: 0.1}}\n"), "accepted");
}

TEST_CASE("the best model is chosen by any number of the validation") {
  CHECK_FALSE(parse("").checkpoint.best.has_value());
  CHECK_EQ(parse("checkpoint: {best: val.auroc}\n").checkpoint.best, "val.auroc");
  CHECK(refusal("checkpoint: {best: accuracy}\n")
            .starts_with("config.yaml:3:20: checkpoint.best: expected val.loss | val.accuracy"));
}

TEST_CASE("a plateau watches any number of the validation") {
  CHECK_EQ(refusal_with_val("schedule: {kind: plateau, metric: val.f1_weighted}\n"), "accepted");
  CHECK_EQ(refusal("schedule: {kind: plateau, metric: val.f1_weighted}\n"),
           "config.yaml:3:35: schedule.metric is val.f1_weighted but there is no data.val");
}
