// A rank that stands for several ranks reads what each of those would read, step by step.
#include "data/step_order.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"

using namespace lockstep;
using Rows = std::vector<int64_t>;

TEST_CASE("a rank that stands for several reads their rows step by step") {
  for (const Uneven uneven : {Uneven::exact, Uneven::pad, Uneven::drop}) {
    for (const bool drop_last : {false, true}) {
      for (const int64_t samples : {1, 9, 64, 101}) {
        for (const int64_t held : {1, 2, 4}) {
          const DataPlanSpec spec{.samples = samples,
                                  .world_size = 4,
                                  .batch_size = 3,
                                  .accumulate = 2,
                                  .uneven = uneven,
                                  .drop_last = drop_last};
          CAPTURE(samples);
          CAPTURE(held);
          const EpochPlan plan(spec);
          for (int64_t first = 0; first < 4; first += held) {
            StepOrder order(spec, first, held, {.seed = 3});
            std::vector<Sampler> each;
            for (int64_t rank = first; rank < first + held; ++rank)
              each.emplace_back(spec, rank, SamplerSettings{.seed = 3});
            for (int64_t epoch = 0; epoch < 2; ++epoch) {
              order.set_epoch(epoch);
              for (Sampler& sampler : each) sampler.set_epoch(epoch);
              for (int64_t step = 0; step < plan.steps(); ++step) {
                for (Sampler& sampler : each) {
                  for (int64_t i = 0; i < plan.window_size(step); ++i) {
                    const auto expected = sampler.next(), found = order.next();
                    CHECK(Rows(expected.begin(), expected.end()) == Rows(found.begin(), found.end()));
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("ranks that do not exist can not be stood for") {
  const DataPlanSpec spec{.samples = 10, .world_size = 4};
  CHECK_THROWS_AS(StepOrder(spec, 3, 2, {}), Error);
  CHECK_THROWS_AS(StepOrder(spec, 0, 0, {}), Error);
}
