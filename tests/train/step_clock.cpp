// Where the time of a step goes: which steps are measured, and how the ranks' laps travel together.
#include "train/step_clock.h"

#include <doctest/doctest.h>

#include <thread>

using namespace lockstep;

namespace {

void step(StepClock& clock, int64_t number, bool is_told) {
  clock.begin_step(number, is_told);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  clock.lap(StepPhase::forward);
  std::this_thread::sleep_for(std::chrono::milliseconds(4));
  clock.lap(StepPhase::communication);
}

TimeSplit taken(StepClock& clock, int rank, int world_size) {
  std::vector<double> sums{1, 2, 3};
  clock.append_to(sums, rank, world_size);
  CHECK(sums.size() == 3 + 5 * static_cast<size_t>(world_size));
  return clock.take_from(sums, world_size);
}

}  // namespace

TEST_CASE("each 16th step is measured and those that are told of") {
  int settled = 0;
  StepClock clock(std::make_unique<HostStopwatch>(), [&] { ++settled; });
  for (int64_t number = 0; number < 17; ++number) step(clock, number, number == 3);
  const TimeSplit split = taken(clock, 0, 1);
  CHECK(split.steps == 3);  // 0, 3, 16
  REQUIRE(split.ranks.size() == 1);
  CHECK(split.ranks[0][1] >= 3 * 0.002);
  CHECK(split.ranks[0][3] >= 3 * 0.004);
  CHECK(split.ranks[0][0] == 0);
  CHECK(split.ranks[0][4] == 0);
  CHECK(settled == 3 + 1);  // as each measured step begins, and in the end
}

TEST_CASE("each rank has its own place in the sums and the clock starts anew") {
  StepClock clock(std::make_unique<HostStopwatch>(), [] {});
  step(clock, 0, false);
  const TimeSplit split = taken(clock, 1, 3);
  CHECK(split.ranks.size() == 3);
  CHECK(split.ranks[0][1] == 0);
  CHECK(split.ranks[1][1] > 0);
  CHECK(split.ranks[2][3] == 0);
  const TimeSplit next = taken(clock, 1, 3);
  CHECK(next.steps == 0);
  CHECK(next.ranks[1][1] == 0);
}
