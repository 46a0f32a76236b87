// The moving average of the weights against a plain loop, and the exchange around an evaluation.
#include "optim/ema.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/optimizer_ops.h"
#include "core/error.h"

using namespace lockstep;

namespace {

const CpuOptimizerOps kOps;

float weight_at(int step, size_t i) { return std::sin(static_cast<float>(step) + 0.7f * static_cast<float>(i)); }

}  // namespace

TEST_CASE("the average of the weights equals a plain loop in double") {
  for (const double decay : {0.0, 0.5, 0.99}) {
    CAPTURE(decay);
    constexpr size_t kCount = 37;
    std::vector<float> weights(kCount);
    std::vector<double> expected(kCount);
    for (size_t i = 0; i < kCount; ++i) expected[i] = weights[i] = weight_at(0, i);
    WeightAverage average(decay, weights, kOps);
    for (int step = 1; step <= 40; ++step) {
      for (size_t i = 0; i < kCount; ++i) {
        weights[i] = weight_at(step, i);
        expected[i] = decay * expected[i] + (1 - decay) * weights[i];
      }
      average.update();
      for (size_t i = 0; i < kCount; ++i) CHECK_EQ(average.values()[i], doctest::Approx(expected[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("the average stands in the weights' place for a while") {
  std::vector<float> weights{1, 2, 3};
  WeightAverage average(0.5, weights, kOps);
  ParameterStore store;
  const uint64_t version = store.version();
  weights = {3, 4, 5};
  average.update();
  {
    const AveragedWeights averaged(&average, store);
    CHECK(store.version() != version);  // copies of the weights are stale now
    CHECK(weights == std::vector<float>{2, 3, 4});
  }
  CHECK(weights == std::vector<float>{3, 4, 5});
  { const AveragedWeights nothing(nullptr, store); }
  average.restart();
  CHECK_EQ(average.values()[0], 3.0f);
}

TEST_CASE("a decay outside its range is refused") {
  std::vector<float> weights(3);
  CHECK_THROWS_AS(WeightAverage(1, weights, kOps), Error);
  CHECK_THROWS_AS(WeightAverage(-0.1, weights, kOps), Error);
  CHECK_THROWS_AS(WeightAverage(NAN, weights, kOps), Error);
}
