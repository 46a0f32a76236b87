// Every schedule of golden/schedule.json, bit for bit, and what a pure function of the step promises.
#include "optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "core/error.h"
#include "support/golden.h"

using namespace lockstep;
using nlohmann::json;

static ScheduleSettings child(const std::string& text) {
  ScheduleSettings s;
  double a = 0, b = 0;
  long n = 0;
  if (std::sscanf(text.c_str(), "LinearLR(%lf,%lf,%ld)", &a, &b, &n) == 3) {
    s.kind = "linear", s.start_factor = a, s.end_factor = b, s.total = n;
  } else if (std::sscanf(text.c_str(), "CosineAnnealingLR(%ld,%lf)", &n, &a) >= 1) {
    s.kind = "cosine", s.t_max = n, s.eta_min = a;
  } else if (std::sscanf(text.c_str(), "StepLR(%ld,%lf)", &n, &a) == 2) {
    s.kind = "step", s.step_size = n, s.gamma = a;
  } else {
    throw_error("the test does not know {}", text);
  }
  return s;
}

static ScheduleSettings settings_of(const json& test_case) {
  static const std::map<std::string, std::string> kinds = {{"StepLR", "step"},
                                                           {"MultiStepLR", "multi_step"},
                                                           {"ExponentialLR", "exponential"},
                                                           {"ConstantLR", "constant"},
                                                           {"LinearLR", "linear"},
                                                           {"PolynomialLR", "polynomial"},
                                                           {"CosineAnnealingLR", "cosine"},
                                                           {"OneCycleLR", "one_cycle"},
                                                           {"SequentialLR", "sequence"},
                                                           {"ChainedScheduler", "chained"},
                                                           {"ReduceLROnPlateau", "plateau"},
                                                           {"CosineAnnealingWarmRestarts", "cosine_warm_restarts"}};
  ScheduleSettings s;
  s.kind = kinds.at(test_case["name"]);
  for (const auto& [key, value] : test_case["settings"].items()) {
    if (key == "step_size")
      s.step_size = value;
    else if (key == "milestones")
      s.milestones = value.get<std::vector<int64_t>>();
    else if (key == "gamma")
      s.gamma = value;
    else if (key == "factor")
      s.factor = value;
    else if (key == "total_iters" || key == "total_steps")
      s.total = value.get<int64_t>();
    else if (key == "start_factor")
      s.start_factor = value;
    else if (key == "end_factor")
      s.end_factor = value;
    else if (key == "power")
      s.power = value;
    else if (key == "T_max")
      s.t_max = value.get<int64_t>();
    else if (key == "T_0")
      s.t_0 = value;
    else if (key == "T_mult")
      s.t_mult = value;
    else if (key == "eta_min")
      s.eta_min = value;
    else if (key == "max_lr")
      s.max_lr = value;
    else if (key == "pct_start")
      s.pct_start = value;
    else if (key == "div_factor")
      s.div_factor = value;
    else if (key == "final_div_factor")
      s.final_div_factor = value;
    else if (key == "anneal_strategy")
      s.anneal = value;
    else if (key == "three_phase")
      s.three_phase = value;
    else if (key == "cycle_momentum")
      s.cycle_momentum = value;
    else if (key == "base_momentum")
      s.base_momentum = value;
    else if (key == "max_momentum")
      s.max_momentum = value;
    else if (key == "mode")
      s.mode = value;
    else if (key == "threshold_mode")
      s.threshold_mode = value;
    else if (key == "patience")
      s.patience = value;
    else if (key == "cooldown")
      s.cooldown = value;
    else if (key == "threshold")
      s.threshold = value;
    else if (key == "min_lr")
      s.min_lr = value;
    else if (key == "eps")
      s.plateau_eps = value;
    else if (key == "schedulers")
      for (const auto& text : value) s.schedules.push_back(child(text));
    else
      throw_error("the test does not know the setting {}", key);
  }
  return s;
}

static std::vector<json> golden_cases(bool plateau) {
  std::vector<json> cases;
  const json file = test::golden("schedule.json");
  for (const json& test_case : file["cases"])
    if ((test_case["name"] == "ReduceLROnPlateau") == plateau) cases.push_back(test_case);
  return cases;
}

TEST_CASE("schedules equal PyTorch bit for bit") {
  const auto cases = golden_cases(false);
  REQUIRE(cases.size() >= 21);
  for (const json& test_case : cases) {
    CAPTURE(test_case.dump());
    Schedule schedule = make_schedule(settings_of(test_case), test_case["base_lr"]);
    const auto expected = test::flat_f64(test_case["lr"]);
    for (size_t t = 0; t < expected.size(); ++t) {
      CAPTURE(t);
      CHECK_EQ(schedule.lr(static_cast<int64_t>(t)), expected[t]);
    }
  }
}

TEST_CASE("one cycle moves the momentum as PyTorch does and others leave it alone") {
  size_t moved = 0;
  for (const json& test_case : golden_cases(false)) {
    CAPTURE(test_case.dump());
    const Schedule schedule = make_schedule(settings_of(test_case), test_case["base_lr"]);
    if (!test_case.contains("momentum")) {
      CHECK_FALSE(schedule.momentum(3).has_value());
      continue;
    }
    ++moved;
    const auto expected = test::flat_f64(test_case["momentum"]);
    for (size_t t = 0; t < expected.size(); ++t)
      CHECK_EQ(schedule.momentum(static_cast<int64_t>(t)).value(), expected[t]);
  }
  CHECK_EQ(moved, 4);
}

TEST_CASE("plateau equals PyTorch bit for bit also when saved and restored on the way") {
  const auto cases = golden_cases(true);
  REQUIRE(cases.size() >= 4);
  for (const json& test_case : cases) {
    CAPTURE(test_case.dump());
    Schedule schedule = make_schedule(settings_of(test_case), test_case["base_lr"]);
    CHECK(schedule.wants_metric());
    CHECK_EQ(schedule.lr(0), test_case["base_lr"].get<double>());
    for (size_t i = 0; i < test_case["metric"].size(); ++i) {
      schedule.report(test_case["metric"][i]);
      CHECK_EQ(schedule.lr(static_cast<int64_t>(i)), test_case["lr"][i].get<double>());
      Schedule restored = make_schedule(settings_of(test_case), test_case["base_lr"]);
      restored.set_plateau_state(schedule.plateau_state());
      schedule = std::move(restored);
    }
  }
}

TEST_CASE("lr is the same whatever was asked before") {
  for (const json& test_case : golden_cases(false)) {
    CAPTURE(test_case.dump());
    const auto expected = test::flat_f64(test_case["lr"]);
    Schedule schedule = make_schedule(settings_of(test_case), test_case["base_lr"]);
    for (const int64_t t : {15, 3, 3, 4, 0, 14, 13, 1}) CHECK_EQ(schedule.lr(t), expected[static_cast<size_t>(t)]);
    for (int64_t start = 0; start < 16; ++start) {  // a resumed run asks for the rest only
      Schedule resumed = make_schedule(settings_of(test_case), test_case["base_lr"]);
      for (int64_t t = start; t < 16; ++t) CHECK_EQ(resumed.lr(t), expected[static_cast<size_t>(t)]);
    }
  }
}

TEST_CASE("warm-up from zero reaches the base rate at its last step and the schedule then starts at its own zero") {
  ScheduleSettings s;
  s.kind = "step", s.step_size = 2, s.gamma = 0.5, s.warmup = 5;
  Schedule schedule = make_schedule(s, 1.0);
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25};
  for (int64_t t = 0; t < 10; ++t) CHECK_EQ(schedule.lr(t), expected[t]);
}

TEST_CASE("warm-up from a factor is PyTorch's LinearLR in a sequence") {
  ScheduleSettings s;
  s.kind = "cosine", s.t_max = 6, s.warmup = 4, s.warmup_start_factor = 0.25;
  Schedule schedule = make_schedule(s, 0.1);
  for (const json& test_case : golden_cases(false)) {
    if (test_case["name"] != "SequentialLR" || test_case["settings"]["milestones"][0] != 4) continue;
    const auto expected = test::flat_f64(test_case["lr"]);
    for (size_t t = 0; t < expected.size(); ++t) CHECK_EQ(schedule.lr(static_cast<int64_t>(t)), expected[t]);
  }
}

TEST_CASE("cosine and one cycle take the run minus its warm-up as their length") {
  ScheduleSettings cosine;
  cosine.kind = "cosine", cosine.warmup = 10;
  ScheduleSettings explicit_cosine = cosine;
  explicit_cosine.t_max = 90;
  CHECK_EQ(make_schedule(cosine, 0.1, 100).lr(77), make_schedule(explicit_cosine, 0.1).lr(77));
  CHECK(make_schedule(cosine, 0.1, 100).lr(100) == doctest::Approx(0).epsilon(1e-12));

  ScheduleSettings cycle;
  cycle.kind = "one_cycle", cycle.max_lr = 1, cycle.warmup = 10;
  Schedule schedule = make_schedule(cycle, 0.1, 100);
  CHECK(schedule.lr(99) == doctest::Approx(1.0 / 25 / 1e4));
  CHECK_EQ(schedule.momentum(0).value(), 0.95);  // as before the cycle's first step
  CHECK_EQ(schedule.momentum(9).value(), 0.95);
  CHECK(schedule.momentum(36).value() == doctest::Approx(0.85));
  CHECK_THROWS_WITH_AS(schedule.lr(100),
                       "schedule.total: one_cycle ends after 90 steps, there is no learning rate for step 90", Error);
}

TEST_CASE("a run shorter than its warm-up is a warm-up") {
  ScheduleSettings s;
  s.kind = "one_cycle", s.max_lr = 1, s.warmup = 8;
  CHECK_EQ(make_schedule(s, 1.0, 4).lr(3), 0.5);
}

TEST_CASE("plateau after a warm-up keeps the warm-up untouched") {
  ScheduleSettings s;
  s.kind = "plateau", s.factor = 0.5, s.patience = 0, s.warmup = 4;
  Schedule schedule = make_schedule(s, 1.0);
  schedule.report(1.0);
  schedule.report(2.0);
  CHECK_EQ(schedule.lr(1), 0.5);
  CHECK_EQ(schedule.lr(4), 0.5);
  CHECK_EQ(schedule.lr(3), 1.0);
  schedule.report(std::nan(""));  // no improvement
  CHECK_EQ(schedule.lr(9), 0.25);
}

TEST_CASE("the learning rate scales with the group's base") {
  ScheduleSettings s;
  s.kind = "cosine", s.t_max = 7, s.warmup = 3;
  Schedule one = make_schedule(s, 0.5), two = make_schedule(s, 1.0);
  for (int64_t t = 0; t < 12; ++t) CHECK_EQ(2 * one.lr(t), two.lr(t));
}

static std::string refusal(const ScheduleSettings& settings, int64_t run_length = 0) {
  try {
    make_schedule(settings, 0.1, run_length);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("wrong schedules are refused by the name of the key") {
  ScheduleSettings s;
  s.kind = "cosin";
  CHECK(refusal(s).starts_with("schedule.kind: unknown name 'cosin', did you mean cosine? Known: none, step,"));
  s.kind = "cosine";
  CHECK_EQ(refusal(s), "schedule.t_max: cosine needs it, the run's length is not known here");
  s.t_max = 0;
  CHECK_EQ(refusal(s), "schedule.t_max: expected a number from 1, found 0");
  ScheduleSettings step;
  step.kind = "step", step.step_size = 0;
  CHECK_EQ(refusal(step), "schedule.step_size: expected a number from 1, found 0");
  ScheduleSettings cycle;
  cycle.kind = "one_cycle", cycle.max_lr = 1, cycle.total = 10;
  CHECK_EQ(refusal(cycle, 16), "schedule.total: one_cycle would end after 10 steps, the run has 16 for it");
  cycle.pct_start = 1.5;
  CHECK_EQ(refusal(cycle), "schedule.pct_start: expected a number in [0, 1], found 1.5");
  ScheduleSettings plateau;
  plateau.kind = "plateau", plateau.factor = 1;
  CHECK_EQ(refusal(plateau), "schedule.factor: plateau needs one in (0, 1), found 1");
  ScheduleSettings sequence;
  sequence.kind = "sequence", sequence.schedules.resize(3), sequence.milestones = {4};
  CHECK_EQ(refusal(sequence), "schedule.milestones: expected 2, one fewer than schedules, found 1");
  sequence.milestones = {4, 4};
  CHECK_EQ(refusal(sequence), "schedule.milestones: expected ascending numbers from 1, found 4");
  sequence.milestones = {4, 8}, sequence.schedules[0].kind = "plateau", sequence.schedules[0].factor = 0.5;
  CHECK_EQ(refusal(sequence), "schedule.schedules[0]: plateau can only be the last of a sequence");
}

TEST_CASE("only plateau takes a metric") {
  Schedule schedule = make_schedule({}, 0.1);
  CHECK_FALSE(schedule.wants_metric());
  CHECK_THROWS_AS(schedule.report(1), Error);
  CHECK_THROWS_AS(schedule.plateau_state(), Error);
  CHECK_THROWS_AS(schedule.lr(-1), Error);
}
