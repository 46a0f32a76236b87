// Speed-up and efficiency: the articles' examples, which trial is compared with which, and how loss curves are.
#include "sweep/scaling.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sweep/agreement.h"

using namespace lockstep;

TEST_CASE("the articles' examples of scaling efficiency") {
  const double on_one = 1000;
  CHECK(speedup(3400, on_one) == doctest::Approx(3.4));
  CHECK(efficiency(3400, on_one, 4) == doctest::Approx(0.85));
  CHECK(efficiency(1600, on_one, 4) == doctest::Approx(0.40));
  CHECK(efficiency(on_one, on_one, 1) == 1);
}

TEST_CASE("the global batch decides whether scaling is weak or strong") {
  const std::vector<ScalingPoint> points{
      {.world_size = 1, .batch_size = 32, .accumulate = 1, .global_batch = 32, .others = "", .throughput = 1000},
      {.world_size = 1, .batch_size = 8, .accumulate = 1, .global_batch = 8, .others = "", .throughput = 900},
      {.world_size = 4, .batch_size = 8, .accumulate = 1, .global_batch = 32, .others = "", .throughput = 1600},
      {.world_size = 4, .batch_size = 32, .accumulate = 1, .global_batch = 128, .others = "", .throughput = 3400}};
  const std::vector<ScalingBase> bases = scaling_bases(points);
  CHECK(bases[2].strong == 0);  // 4 x 8 = 1 x 32: the global batch stays
  CHECK(bases[2].weak == 1);    // the batch of a rank stays
  CHECK_FALSE(bases[3].strong.has_value());
  CHECK(bases[3].weak == 0);
  CHECK(bases[0].strong == 0);
}

TEST_CASE("strong scaling compares with the fastest trial on one rank however it splits the batch") {
  std::vector<ScalingPoint> points{
      {.world_size = 1, .batch_size = 8, .accumulate = 4, .global_batch = 32, .others = "", .throughput = 800},
      {.world_size = 1, .batch_size = 32, .accumulate = 1, .global_batch = 32, .others = "", .throughput = 1000},
      {.world_size = 4, .batch_size = 8, .accumulate = 1, .global_batch = 32, .others = "", .throughput = 1600}};
  CHECK(scaling_bases(points)[2].strong == 1);
  points[1].throughput = NAN;  // it failed
  CHECK(scaling_bases(points)[2].strong == 0);
  points[0].others = points[1].others = "optimizer.lr=0.1\n";
  CHECK_FALSE(scaling_bases(points)[2].strong.has_value());
}

TEST_CASE("curves of equal global batches are compared where both have seen the same samples") {
  const std::vector<LossCurve> curves{{.global_batch = 32, .others = "", .loss = {{32, 2.0}, {64, 1.5}, {96, 1.0}}},
                                      {.global_batch = 32, .others = "", .loss = {{32, 2.0}, {96, 1.25}}},
                                      {.global_batch = 32, .others = "", .loss = {{32, 2.0625}, {96, NAN}}},
                                      {.global_batch = 64, .others = "", .loss = {{64, 9.0}}},
                                      {.global_batch = 32, .others = "seed=2", .loss = {{32, 7.0}}}};
  const std::vector<Agreement> found = agreements(curves);
  REQUIRE(found.size() == 1);
  CHECK(found[0].curves == std::vector<size_t>{0, 1, 2});
  CHECK(found[0].points == 1);  // at 96 one is not finite
  CHECK(found[0].difference == 0.0625);
  CHECK(found[0].at_samples == 32);
  CHECK(found[0].high == 2);
  const std::vector<Agreement> two = agreements({curves[0], curves[1]});
  CHECK(two[0].points == 2);
  CHECK(two[0].difference == 0.25);
  CHECK(two[0].at_samples == 96);
  CHECK(two[0].low == 0);
}
