// A step of training must not allocate: operator new is counted in this executable.
#include <doctest/doctest.h>

#include "backend/cpu/optimizer_ops.h"
#include "optim/clip.h"
#include "optim/ema.h"
#include "optim/golden_optimizer.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "support/allocations.h"

using namespace lockstep;

TEST_CASE("a step with its clipping and its schedule allocates nothing") {
  const CpuOptimizerOps ops;
  ScheduleSettings schedule_settings;
  schedule_settings.kind = "one_cycle", schedule_settings.max_lr = 0.1, schedule_settings.warmup = 2;
  const nlohmann::json cases = test::golden("optim.json")["cases"];
  REQUIRE_EQ(cases.size(), 25);
  for (const auto& test_case : cases) {
    CAPTURE(test_case["name"].get<std::string>());
    const auto optimizer =
        make_optimizer(test::optimizer_settings(test_case),
                       {{"group 1", {{0, 16}}, 0.1, 0.01}, {"the rest", {{16, 48}}, 0.1, 0}}, 64, ops);
    Schedule schedule = make_schedule(schedule_settings, 0.1, 10);
    const std::vector<ParameterRange> slices{{0, 10}, {16, 40}};
    NormClip clip(ops, slices, 1.0), cubic_clip(ops, slices, 1.0, 3.0);
    std::vector<float> p(64, 1), g(64, 0.5);
    optimizer->step(p, g);
    const int64_t before = test::allocations();
    for (int64_t t = 1; t < 10; ++t) {
      for (int group = 0; group < optimizer->groups(); ++group) optimizer->set_lr(group, schedule.lr(t));
      clip.clip(g);
      cubic_clip.clip(g);
      clip_by_value(ops, slices, g, 0.5);
      optimizer->step(p, g);
    }
    const int64_t during = test::allocations() - before;
    CHECK_EQ(during, 0);
  }
  for (const char* kind : {"lars", "lamb"}) {
    CAPTURE(kind);
    OptimizerSettings settings;
    settings.kind = kind;
    const auto optimizer = make_optimizer(settings, {{"all", {{0, 10}, {16, 40}}, 0.1, 0.01}}, 64, ops);
    std::vector<float> p(64, 1), g(64, 0.5);
    WeightAverage average(0.9, p, ops);
    const int64_t before = test::allocations();
    for (int t = 0; t < 10; ++t) optimizer->step(p, g), average.update(), average.swap();
    const int64_t during = test::allocations() - before;
    CHECK_EQ(during, 0);
  }
  const int64_t before = test::allocations();
  int* volatile counted = new int(1);  // the counter counts
  delete counted;
  CHECK_GE(test::allocations() - before, 1);
}
