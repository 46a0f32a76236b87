// A step of training must not allocate: operator new is counted in this executable.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backend/cpu/optimizer_ops.h"
#include "optim/clip.h"
#include "optim/golden_optimizer.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

static std::atomic<long> allocations{0};

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

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
    std::vector<float> p(64, 1), g(64, 0.5);
    optimizer->step(p, g);
    const long before = allocations;
    for (int64_t t = 1; t < 10; ++t) {
      for (int group = 0; group < optimizer->groups(); ++group) optimizer->set_lr(group, schedule.lr(t));
      clip_by_norm(ops, slices, g, 1.0);
      clip_by_norm(ops, slices, g, 1.0, 3.0);
      clip_by_value(ops, slices, g, 0.5);
      optimizer->step(p, g);
    }
    const long during = allocations - before;
    CHECK_EQ(during, 0);
  }
  const long before = allocations;
  ::operator delete(::operator new(1));  // the counter counts
  CHECK_GE(allocations - before, 1);
}
