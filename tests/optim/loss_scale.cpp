// The dynamic loss scale against GradScaler's rule.
#include "optim/loss_scale.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace lockstep;

TEST_CASE("the loss scale doubles after growth_interval good steps in a row and halves at each bad one") {
  LossScale scale({.init = 1024, .growth_interval = 3});
  const std::pair<bool, double> steps[] = {{false, 1024}, {false, 1024}, {false, 2048}, {false, 2048}, {true, 1024},
                                           {false, 1024}, {false, 1024}, {false, 2048}, {true, 1024},  {true, 512}};
  for (const auto& [found_inf, after] : steps) {
    scale.update(found_inf);
    CHECK(scale.scale() == after);
    CHECK(scale.inverse() == static_cast<float>(1 / after));
  }
  CHECK(scale.skipped() == 3);
}

TEST_CASE("the defaults of the loss scale are GradScaler's") {
  LossScale scale({});
  CHECK(scale.scale() == 65536);
  for (int i = 0; i < 1999; ++i) scale.update(false);
  CHECK(scale.scale() == 65536);
  scale.update(false);
  CHECK(scale.scale() == 131072);
}

TEST_CASE("the loss scale never grows to infinity") {
  LossScale scale({.init = std::ldexp(1.0, 126), .growth_interval = 1});
  scale.update(false);
  CHECK(scale.scale() == std::ldexp(1.0, 127));
  scale.update(false);
  CHECK(scale.scale() == std::ldexp(1.0, 127));
}

TEST_CASE("a loss scale below the floor and a fixed one that never helps are errors") {
  LossScale dynamic({.init = 4, .floor = 1});
  dynamic.update(true);
  dynamic.update(true);
  CHECK_THROWS_WITH_AS(dynamic.update(true), doctest::Contains("below train.loss_scale.floor"), Error);
  LossScale fixed({.fixed = 128});
  for (int i = 0; i < 99; ++i) fixed.update(true);
  CHECK(fixed.scale() == 128);
  CHECK_THROWS_WITH_AS(fixed.update(true), doctest::Contains("100 steps in a row"), Error);
  CHECK_THROWS_AS(LossScale({.init = INFINITY}), Error);
}
