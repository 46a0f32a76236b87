// Losses against PyTorch's numbers, the oracle and finite differences.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"
#include "support/finite_difference.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using namespace lockstep::test;
using oracle::narrow;
using oracle::random_floats;
using oracle::widen;

namespace {

struct Target {
  std::vector<float> dense;
  std::vector<int64_t> indices;
  TensorView view(int64_t rows) {
    if (dense.empty()) return {indices.data(), {.shape = Shape{rows}, .dtype = DType::i64}};
    return {dense.data(), {.shape = Shape{rows, std::ssize(dense) / rows}}};
  }
};

LossSpec spec_of(const nlohmann::json& entry) {
  const std::string name = entry["name"];
  const auto& settings = entry["settings"];
  LossSpec spec;
  if (name == "mse_loss") spec.kind = LossSpec::Kind::mse;
  if (name == "l1_loss") spec.kind = LossSpec::Kind::l1;
  if (name == "smooth_l1_loss") spec.kind = LossSpec::Kind::smooth_l1;
  if (name == "bce_with_logits") spec.kind = LossSpec::Kind::bce_with_logits;
  spec.label_smoothing = settings.value("label_smoothing", 0.0);
  spec.ignore_index = settings.value("ignore_index", -100);
  spec.beta = settings.value("beta", 1.0);
  if (settings.contains("weight")) spec.class_weights = flat_f32(settings["weight"]);
  if (settings.contains("pos_weight")) spec.class_weights = flat_f32(settings["pos_weight"]);
  return spec;
}

}  // namespace

TEST_CASE("losses: values and gradients equal PyTorch's for mean and sum") {
  int checked = 0;
  const nlohmann::json file = golden("loss_and_norm.json");
  for (const auto& entry : file["loss"]) {
    const std::string name = entry["name"], reduction = entry["settings"].value("reduction", "");
    // nll_loss starts from log-probabilities and log_softmax is no loss; cross_entropy is both in one.
    if (name == "nll_loss" || name == "log_softmax") continue;
    CAPTURE(entry["name"].dump());
    CAPTURE(entry["settings"].dump());
    std::vector<float> x = flat_f32(entry["input"]);
    const auto rows = static_cast<int64_t>(entry["input"].size()), classes = std::ssize(x) / rows;
    Target target;
    if (name == "cross_entropy")
      target.indices = flat_i64(entry["target"]);
    else
      target.dense = flat_f32(entry["target"]);
    const TensorView output{x.data(), {.shape = Shape{rows, classes}}};
    const auto plan = make_cpu_loss(spec_of(entry), rows, classes);
    const LossSums sums = plan->forward(output, target.view(rows));
    const double scale = reduction == "mean" ? 1 / sums.weight : 1.0;
    std::vector<float> dx(x.size(), NAN);
    const LossSums again = plan->forward_backward(output, target.view(rows), scale, dx.data());
    CHECK_EQ(again.loss, sums.loss);
    CHECK_EQ(again.weight, sums.weight);
    double wanted = 0;  // reduction none: the sum of the values
    for (double value : flat_f64(entry["value"].is_array() ? entry["value"] : nlohmann::json::array({entry["value"]})))
      wanted += value;
    CHECK(std::abs(sums.loss * scale - wanted) <= 1e-6 + 5e-6 * std::abs(wanted));
    CHECK_EQ(differs(dx, flat_f32(entry["grad_input"]), 5e-6, 1e-6), "");
    ++checked;
  }
  CHECK_EQ(checked, 31);
}

TEST_CASE("cross entropy: sums and gradients equal the oracle with every option") {
  for (const auto& [rows, classes] : {std::array<int64_t, 2>{64, 10}, {32, 2}, {5, 1}, {3, 1000}})
    for (const double smoothing : {0.0, 0.1, 1.0})
      for (const bool weighted : {false, true}) {
        const auto count = static_cast<size_t>(rows * classes);
        std::vector<float> x = random_floats(count, 1, -8, 8), dx(count, NAN);
        std::vector<float> weights =
            weighted ? random_floats(static_cast<size_t>(classes), 2, 0, 2) : std::vector<float>{};
        std::vector<int64_t> labels;
        for (int64_t i = 0; i < rows; ++i) labels.push_back(i % 7 == 3 ? -5 : i * i % classes);
        const auto plan =
            make_cpu_loss({.label_smoothing = smoothing, .class_weights = weights, .ignore_index = -5}, rows, classes);
        const TensorView output{x.data(), {.shape = Shape{rows, classes}}};
        const TensorView target{labels.data(), {.shape = Shape{rows}, .dtype = DType::i64}};
        const LossSums sums = plan->forward_backward(output, target, 1, dx.data());
        const auto expected = oracle::cross_entropy(rows, classes, widen(x), labels, widen(weights), smoothing, -5);
        CHECK_EQ(sums.loss, doctest::Approx(expected.sum).epsilon(1e-6));
        CHECK_EQ(sums.weight, doctest::Approx(expected.weight).epsilon(1e-12));
        CHECK_EQ(differs(dx, narrow(expected.gradient), 2e-6, 2e-7), "");

        Target probabilities{.dense = random_floats(count, 3, 0, 1), .indices = {}};
        const LossSums soft = plan->forward_backward(output, probabilities.view(rows), 1, dx.data());
        const auto wanted = oracle::cross_entropy_probabilities(rows, classes, widen(x), widen(probabilities.dense),
                                                                widen(weights), smoothing);
        CHECK_EQ(soft.loss, doctest::Approx(wanted.sum).epsilon(1e-6));
        CHECK_EQ(soft.weight, rows);
        CHECK_EQ(differs(dx, narrow(wanted.gradient), 2e-6, 2e-6), "");
      }
}

TEST_CASE("elementwise losses: sums and gradients equal the oracle") {
  std::vector<float> x = random_floats(60, 1, -3, 3), t = random_floats(60, 2, 0, 1), dx(60);
  x[5] = t[5];
  const std::vector<float> pos_weight{0.5F, 1, 3};
  const TensorView output{x.data(), {.shape = Shape{20, 3}}}, target{t.data(), {.shape = Shape{20, 3}}};
  const oracle::Values wx = widen(x), wt = widen(t);
  const auto check = [&](const LossSpec& spec, const oracle::Loss& expected) {
    const LossSums sums = make_cpu_loss(spec, 25, 3)->forward_backward(output, target, 0.5, dx.data());
    CHECK_EQ(sums.loss, doctest::Approx(expected.sum).epsilon(1e-12));
    CHECK_EQ(sums.weight, 60);
    oracle::Values half = expected.gradient;
    for (double& value : half) value *= 0.5;
    CHECK_EQ(differs(dx, narrow(half), 1e-6, 1e-8), "");
  };
  check({.kind = LossSpec::Kind::mse}, oracle::mse(wx, wt));
  check({.kind = LossSpec::Kind::l1}, oracle::l1(wx, wt));
  check({.kind = LossSpec::Kind::smooth_l1, .beta = 0.7}, oracle::smooth_l1(wx, wt, 0.7));
  check({.kind = LossSpec::Kind::smooth_l1, .beta = 0}, oracle::l1(wx, wt));
  check({.kind = LossSpec::Kind::bce_with_logits}, oracle::bce_with_logits(wx, wt, {}));
  check({.kind = LossSpec::Kind::bce_with_logits, .class_weights = pos_weight},
        oracle::bce_with_logits(wx, wt, widen(pos_weight)));
}

TEST_CASE("losses: gradients are those of finite differences") {
  for (const LossSpec::Kind kind : {LossSpec::Kind::cross_entropy, LossSpec::Kind::mse, LossSpec::Kind::l1,
                                    LossSpec::Kind::smooth_l1, LossSpec::Kind::bce_with_logits}) {
    CAPTURE(static_cast<int>(kind));
    std::vector<float> x = random_floats(40, 1, 2, 4), t = random_floats(40, 2, 0, 1),
                       dx(40);  // |x - t| away from 0 and beta
    const auto plan = make_cpu_loss({.kind = kind, .label_smoothing = 0.1}, 8, 5);
    const TensorView target{t.data(), {.shape = Shape{8, 5}}};
    const auto loss = [&](const std::vector<float>& at) {
      std::vector<float> copy = at;
      return plan->forward({copy.data(), {.shape = Shape{8, 5}}}, target).loss;
    };
    plan->forward_backward({x.data(), {.shape = Shape{8, 5}}}, target, 1, dx.data());
    CHECK_EQ(gradient_differs(loss, x, dx, 3, 1e-4), "");
  }
}

TEST_CASE("cross entropy: a batch that is all ignored or empty has no loss and no weight") {
  std::vector<float> x = random_floats(12, 1), dx(12, NAN);
  std::vector<int64_t> labels(3, -100);
  const auto plan = make_cpu_loss({}, 3, 4);
  const LossSums sums = plan->forward_backward({x.data(), {.shape = Shape{3, 4}}},
                                               {labels.data(), {.shape = Shape{3}, .dtype = DType::i64}}, 1, dx.data());
  CHECK_EQ(sums.loss, 0);
  CHECK_EQ(sums.weight, 0);
  CHECK_EQ(differs(dx, std::vector<float>(12), 0, 0), "");
  const LossSums none =
      plan->forward({x.data(), {.shape = Shape{0, 4}}}, {labels.data(), {.shape = Shape{0}, .dtype = DType::i64}});
  CHECK_EQ(none.weight, 0);
}

TEST_CASE("cross entropy: confident and hopeless rows keep their digits") {
  std::vector<float> x{40, 0, /**/ 0, 40, /**/ -300, 300};
  std::vector<int64_t> labels{0, 0, 0};
  std::vector<float> dx(6);
  const LossSums sums = make_cpu_loss({}, 3, 2)->forward_backward(
      {x.data(), {.shape = Shape{3, 2}}}, {labels.data(), {.shape = Shape{3}, .dtype = DType::i64}}, 1, dx.data());
  CHECK_EQ(sums.loss, doctest::Approx(640).epsilon(1e-9));
  CHECK_EQ(dx[1], doctest::Approx(std::exp(-40.0)).epsilon(1e-6));
  CHECK_EQ(dx[4], -1);
}

TEST_CASE("losses: targets that do not fit are errors that name them") {
  std::vector<float> x(8), t(8);
  std::vector<int64_t> labels{0, 4};
  const TensorView output{x.data(), {.shape = Shape{2, 4}}};
  const auto plan = make_cpu_loss({}, 2, 4);
  CHECK_THROWS_WITH_AS(plan->forward(output, {labels.data(), {.shape = Shape{2}, .dtype = DType::i64}}),
                       "cross_entropy: target 4 of row 1 is not one of 4 classes (0 to 3)", Error);
  CHECK_THROWS_AS(plan->forward(output, {labels.data(), {.shape = Shape{1}, .dtype = DType::i64}}), Error);
  CHECK_THROWS_AS(
      plan->forward({x.data(), {.shape = Shape{4, 2}}}, {labels.data(), {.shape = Shape{4}, .dtype = DType::i64}}),
      Error);
  CHECK_THROWS_AS(make_cpu_loss({.kind = LossSpec::Kind::mse}, 2, 4)
                      ->forward(output, {labels.data(), {.shape = Shape{2}, .dtype = DType::i64}}),
                  Error);
  CHECK_THROWS_AS(make_cpu_loss({.class_weights = {1, 2}}, 2, 4), Error);
  CHECK_THROWS_AS(make_cpu_loss({.label_smoothing = 1.5}, 2, 4), Error);
}
