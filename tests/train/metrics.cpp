// Every validation metric against a plain loop in double, its edge cases, and which metric suits which targets.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "comm/serial_communicator.h"
#include "core/error.h"
#include "support/metric_runner.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<MetricValue> values_of(const std::vector<std::string>& names, const MetricContext& context,
                                   const Samples& samples, int64_t batch = 7) {
  SerialCommunicator alone;
  return run_metrics(names, context, samples, batch, alone);
}

double number_of(const std::vector<MetricValue>& values, const std::string& name) {
  const MetricValue* value = find(values, name);
  REQUIRE_MESSAGE(value != nullptr, name);
  return value->numbers.front();
}

std::string refusal(const std::vector<std::string>& names, const MetricContext& context) {
  try {
    make_metrics(names, context);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

Samples two_class(const std::vector<float>& leads, const std::vector<int64_t>& labels) {
  Samples s{.rows = static_cast<int64_t>(labels.size()), .outputs = 2, .labels = labels};
  for (const float lead : leads) s.scores.insert(s.scores.end(), {1.0f, 1.0f + lead});
  s.values.assign(s.scores.size(), 0);
  return s;
}

void check_average(const std::vector<MetricValue>& values, const std::string& name, const std::vector<double>& each,
                   const ClassOracle& oracle) {
  CAPTURE(name);
  double macro = 0, present = 0, weighted = 0, all = 0;
  for (size_t c = 0; c < each.size(); ++c) {
    double targets = 0, predictions = 0;
    for (size_t other = 0; other < each.size(); ++other) {
      targets += oracle.confusion[c][other];
      predictions += oracle.confusion[other][c];
    }
    if (targets + predictions > 0) macro += each[c], ++present;
    weighted += targets * each[c];
    all += targets;
  }
  CHECK(number_of(values, name) == doctest::Approx(macro / present).epsilon(1e-14));
  CHECK(number_of(values, name + "_weighted") == doctest::Approx(weighted / all).epsilon(1e-14));
  const MetricValue& list = *find(values, name + "_per_class");
  REQUIRE(list.numbers.size() == each.size());
  for (size_t c = 0; c < each.size(); ++c) CHECK(list.numbers[c] == doctest::Approx(each[c]).epsilon(1e-14));
}

}  // namespace

TEST_CASE("accuracy and top k count what sorting every row counts") {
  const Samples samples = make_samples(300, 12, 1);
  const auto values = values_of({"accuracy", "top_3", "top_5", "top_10"}, classes_context(12), samples);
  CHECK_EQ(number_of(values, "accuracy"), class_oracle(samples).accuracy);
  CHECK_EQ(number_of(values, "correct"), 300 * class_oracle(samples).accuracy);
  CHECK_EQ(number_of(values, "top_3"), top_k_oracle(samples, 3));
  CHECK_EQ(number_of(values, "top_5"), top_k_oracle(samples, 5));
  CHECK_EQ(number_of(values, "top_10"), top_k_oracle(samples, 10));
  CHECK_LT(number_of(values, "top_3"), number_of(values, "top_10"));
}

TEST_CASE("precision recall F1 and confusion are those of a plain count") {
  for (const bool skip : {false, true}) {
    const Samples samples = make_samples(120, 5, 2, skip);
    const ClassOracle oracle = class_oracle(samples);
    const auto values = values_of({"precision", "recall", "f1", "confusion"}, classes_context(5), samples);
    check_average(values, "precision", oracle.precision, oracle);
    check_average(values, "recall", oracle.recall, oracle);
    check_average(values, "f1", oracle.f1, oracle);
    const MetricValue& confusion = *find(values, "confusion");
    CHECK_EQ(confusion.columns, 5);
    for (size_t i = 0; i < 25; ++i) CHECK_EQ(confusion.numbers[i], oracle.confusion[i / 5][i % 5]);
  }
}

TEST_CASE("a class with nothing to divide by counts zero and one that never occurs not at all") {
  // Class 0 is met once and missed once, class 1 is predicted only, class 2 never occurs.
  const Samples samples{
      .rows = 2, .outputs = 3, .scores = {2, 1, 0, 1, 2, 0}, .labels = {0, 0}, .values = std::vector<float>(6)};
  const auto values = values_of({"precision", "recall", "f1"}, classes_context(3), samples);
  CHECK_EQ(find(values, "precision_per_class")->numbers, std::vector<double>{1, 0, 0});
  CHECK_EQ(find(values, "recall_per_class")->numbers, std::vector<double>{0.5, 0, 0});
  CHECK_EQ(number_of(values, "precision"), 0.5);
  CHECK_EQ(number_of(values, "recall"), 0.25);
  CHECK_EQ(number_of(values, "recall_weighted"), 0.5);
  CHECK_EQ(number_of(values, "f1"), (2.0 / 3) / 2);
}

TEST_CASE("a row with a NaN is wrong and predicts nothing") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Samples samples{
      .rows = 2, .outputs = 3, .scores = {2, 1, 0, 5, nan, 0}, .labels = {0, 0}, .values = std::vector<float>(6)};
  const auto values = values_of({"accuracy", "top_3", "recall", "confusion", "auroc"}, classes_context(3), samples);
  CHECK_EQ(number_of(values, "accuracy"), 0.5);
  CHECK_EQ(number_of(values, "top_3"), 0.5);
  CHECK_EQ(find(values, "recall_per_class")->numbers.front(), 0.5);
  CHECK_EQ(std::accumulate(find(values, "confusion")->numbers.begin(), find(values, "confusion")->numbers.end(), 0.0),
           1);
  CHECK(std::isnan(number_of(values, "auroc")));
}

TEST_CASE("AUROC of two classes is that of all pairs") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Samples samples = make_samples(60, 2, seed);
    std::vector<double> leads;
    std::vector<bool> positive;
    for (size_t row = 0; row < 60; ++row) {
      leads.push_back(samples.scores[2 * row + 1] - samples.scores[2 * row]);
      positive.push_back(samples.labels[row] == 1);
    }
    const auto values = values_of({"auroc"}, classes_context(2), samples);
    CHECK_EQ(number_of(values, "auroc"), auroc_oracle(leads, positive));
    CHECK_EQ(find(values, "auroc_per_class"), nullptr);
  }
}

TEST_CASE("AUROC of perfect reversed tied and missing classes") {
  const auto area = [](const std::vector<float>& leads, const std::vector<int64_t>& labels) {
    return number_of(values_of({"auroc"}, classes_context(2), two_class(leads, labels)), "auroc");
  };
  CHECK_EQ(area({1, 2, 3, 4}, {0, 0, 1, 1}), 1);
  CHECK_EQ(area({4, 3, 2, 1}, {0, 0, 1, 1}), 0);
  CHECK_EQ(area({1, 1, 1, 1}, {0, 1, 1, 1}), 0.5);
  CHECK_EQ(area({1, 2, 2, 3}, {0, 0, 1, 1}), 0.875);
  CHECK(std::isnan(area({1, 2}, {1, 1})));
  CHECK(std::isnan(area({1, 2}, {0, 0})));
}

TEST_CASE("AUROC of several classes is the mean of each against the rest") {
  for (const bool skip : {false, true}) {
    Samples samples = make_samples(90, 4, 11, skip);
    for (size_t i = 0; i < samples.scores.size() / 2; ++i) {  // every row twice, so that there are ties; else none
      samples.scores[i] += 0.37f * std::sin(static_cast<float>(i));
      samples.scores[i + samples.scores.size() / 2] = samples.scores[i];
    }
    double sum = 0, defined = 0;
    const auto values = values_of({"auroc"}, classes_context(4), samples);
    for (size_t c = 0; c < 4; ++c) {
      std::vector<double> probability;
      std::vector<bool> positive;
      for (size_t row = 0; row < 90; ++row) {
        double total = 0;
        for (size_t k = 0; k < 4; ++k) total += std::exp(static_cast<double>(samples.scores[4 * row + k]));
        probability.push_back(std::exp(static_cast<double>(samples.scores[4 * row + c])) / total);
        positive.push_back(samples.labels[row] == static_cast<int64_t>(c));
      }
      const double expected = auroc_oracle(probability, positive), found = find(values, "auroc_per_class")->numbers[c];
      CHECK_EQ(std::isnan(expected), skip && c == 1);
      CHECK_EQ(std::isnan(found), std::isnan(expected));
      if (std::isnan(expected)) continue;
      CHECK_EQ(found, expected);
      sum += expected, ++defined;
    }
    CHECK_EQ(number_of(values, "auroc"), sum / defined);
  }
}

TEST_CASE("AUROC of yes or no outputs") {
  const MetricContext context{.outputs = 1, .targets = TargetKind::values, .loss = LossSpec::Kind::bce_with_logits};
  Samples samples{.rows = 4, .outputs = 1, .scores = {1, 2, 2, 3}, .labels = {0, 0, 0, 0}, .values = {0, 0, 1, 1}};
  CHECK_EQ(number_of(values_of({"auroc"}, context, samples), "auroc"), 0.875);
  samples.values[1] = 0.5f;
  CHECK_THROWS_WITH_AS(values_of({"auroc"}, context, samples), "auroc: expected targets 0 or 1, found 0.5", Error);
}

TEST_CASE("errors of real values are those of a plain loop") {
  const Samples samples = make_samples(200, 3, 4);
  const auto values = values_of({"mse", "mae", "r2"}, regression_context(3), samples);
  CHECK(number_of(values, "mse") == doctest::Approx(mse_oracle(samples)).epsilon(1e-13));
  CHECK(number_of(values, "mae") == doctest::Approx(mae_oracle(samples)).epsilon(1e-13));
  CHECK(number_of(values, "r2") == doctest::Approx(r2_oracle(samples)).epsilon(1e-13));
}

TEST_CASE("R2 keeps its digits where the mean is far larger than the spread") {
  Samples samples{.rows = 1000, .outputs = 1, .labels = std::vector<int64_t>(1000)};
  for (int i = 0; i < 1000; ++i) {
    samples.values.push_back(16777000.0f + static_cast<float>(i % 8));  // of variance 5.25
    samples.scores.push_back(samples.values.back() + (i % 2 == 0 ? 1.0f : -1.0f));
  }
  CHECK(number_of(values_of({"r2"}, regression_context(1), samples), "r2") ==
        doctest::Approx(1 - 1 / 5.25).epsilon(1e-14));
}

TEST_CASE("R2 of equal targets and of too few samples") {
  Samples samples{
      .rows = 3, .outputs = 1, .scores = {0.1f, 0.1f, 0.1f}, .labels = {0, 0, 0}, .values = {0.1f, 0.1f, 0.1f}};
  CHECK_EQ(number_of(values_of({"r2"}, regression_context(1), samples), "r2"), 1);
  samples.scores[1] = 0.2f;
  CHECK_EQ(number_of(values_of({"r2"}, regression_context(1), samples), "r2"), 0);
  CHECK(std::isnan(number_of(values_of({"r2"}, regression_context(1), pick(samples, {0})), "r2")));
}

TEST_CASE("the batch size changes no bit") {
  const Samples samples = make_samples(101, 3, 5);
  for (const char* name : {"mse", "mae", "r2"}) {
    const double whole = number_of(values_of({name}, regression_context(3), samples, 101), name);
    for (const int64_t batch : {1, 2, 50})
      CHECK_EQ(number_of(values_of({name}, regression_context(3), samples, batch), name), whole);
  }
}

TEST_CASE("a metric that does not suit is refused by name") {
  MetricContext bce = regression_context(1);
  bce.loss = LossSpec::Kind::bce_with_logits;
  for (const char* name : {"accuracy", "top_3", "precision", "recall", "f1", "confusion"})
    CHECK_EQ(
        refusal({"loss", name}, regression_context(12)),
        std::string("eval.metrics: ") + name + " needs class targets (train.loss cross_entropy), found real values");
  for (const char* name : {"mse", "mae", "r2"}) {
    const std::string start =
        std::string("eval.metrics: ") + name + " needs a regression (train.loss mse, l1 or smooth_l1), found ";
    CHECK_EQ(refusal({name}, classes_context(3)), start + "class targets");
    CHECK_EQ(refusal({name}, bce), start + "bce_with_logits");
  }
  CHECK_EQ(refusal({"auroc"}, regression_context(1)),
           "eval.metrics: auroc needs class targets or train.loss bce_with_logits, found a regression");
  CHECK_EQ(refusal({"auroc"}, bce), "accepted");
  CHECK_EQ(refusal({"top_5"}, classes_context(3)), "eval.metrics: top_5 needs 5 outputs of the model or more, found 3");
  CHECK_EQ(refusal({"confusion"}, classes_context(3000)),
           "eval.metrics: confusion is a table of 3000 x 3000 numbers here; 2048 outputs are the limit");
}

TEST_CASE("without a list there is the accuracy of classes and nothing for real values") {
  CHECK_EQ(make_metrics({}, classes_context(2)).size(), 1);
  CHECK_EQ(make_metrics({}, regression_context(2)).size(), 0);
  CHECK_EQ(make_metrics({"loss"}, classes_context(2)).size(), 0);
}

TEST_CASE("what is watched must be computed") {
  const auto metrics = make_metrics({"accuracy", "f1", "confusion"}, classes_context(3));
  for (const char* watched : {"val.loss", "train.loss", "val.accuracy", "val.f1", "val.f1_weighted"})
    CHECK_NOTHROW(check_watched("schedule.metric", watched, metrics));
  CHECK_THROWS_WITH_AS(check_watched("schedule.metric", "val.auroc", metrics),
                       "schedule.metric val.auroc: eval.metrics does not compute it here, but val.loss, val.accuracy, "
                       "val.f1, val.f1_weighted",
                       Error);
}

TEST_CASE("every watchable number knows its direction and comes from a metric") {
  for (const std::string& name : watchable_metrics()) {
    CAPTURE(name);
    const bool error = name == "val.loss" || name == "val.mse" || name == "val.mae";
    CHECK_EQ(larger_is_better(name), !error);
    const MetricContext context = error || name == "val.r2" ? regression_context(12) : classes_context(12);
    const std::string of = name.substr(4, name.find("_weighted") - 4);
    CHECK_NOTHROW(check_watched("x", name, make_metrics({of}, context)));
  }
}
