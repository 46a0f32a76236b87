// Counts of samples, micro-steps and steps against the articles' examples and against a count by hand.
#include "data/data_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"

using namespace lockstep;

namespace {

std::string error_of(const DataPlanSpec& spec) {
  try {
    DataPlan{spec};
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("16 samples on 4 ranks with batch 2") {
  const DataPlan four({.samples = 16, .world_size = 4, .batch_size = 2});
  for (int64_t rank = 0; rank < 4; ++rank) CHECK_EQ(four.epoch().rank_samples(rank), 4);
  CHECK_EQ(four.epoch().global_batch(), 8);
  CHECK_EQ(four.epoch().steps(), 2);
  const DataPlan one({.samples = 16, .batch_size = 2});
  CHECK_EQ(one.epoch().steps(), 8);
}

TEST_CASE("10 examples a rank with batch 3 and windows of 3") {
  const EpochPlan plan({.samples = 20, .world_size = 2, .batch_size = 3, .accumulate = 3});
  CHECK_EQ(plan.micro_steps(), 4);
  CHECK_EQ(plan.steps(), 2);
  CHECK_EQ(plan.window_size(0), 3);
  CHECK_EQ(plan.window_size(1), 1);
  CHECK_EQ(plan.step_samples(0), 18);
  CHECK_EQ(plan.step_samples(1), 2);
  CHECK_EQ(plan.position_after(0), 18);
  CHECK_EQ(plan.position_after(1), 20);
}

TEST_CASE("5 samples on 8 ranks with batch 2 train nothing under drop_last") {
  DataPlanSpec spec{.samples = 5, .world_size = 8, .batch_size = 2, .uneven = Uneven::pad, .drop_last = true};
  const EpochPlan dropping(spec);
  CHECK_EQ(dropping.rank_samples(7), 1);
  CHECK_EQ(dropping.padding(), 3);
  CHECK(dropping.empty_on_every_rank());
  CHECK_EQ(dropping.dropped(), 5);
  CHECK_EQ(dropping.steps(), 0);
  spec.drop_last = false;
  CHECK_EQ(EpochPlan(spec).steps(), 1);
  CHECK_FALSE(EpochPlan(spec).empty_on_some_rank());
  spec.uneven = Uneven::exact;
  CHECK_FALSE(EpochPlan(spec).empty_on_every_rank());
  CHECK(EpochPlan(spec).empty_on_some_rank());
  spec.uneven = Uneven::drop;
  CHECK(EpochPlan(spec).empty_on_every_rank());
}

TEST_CASE("a data set without samples is empty and not an error") {
  const DataPlan plan({.samples = 0, .world_size = 2, .uneven = Uneven::pad});
  CHECK(plan.epoch().empty_on_every_rank());
  CHECK_EQ(plan.total_steps(), 0);
}

TEST_CASE("the plan agrees with dealing samples one by one") {
  for (const Uneven uneven : {Uneven::exact, Uneven::pad, Uneven::drop}) {
    for (int64_t n = 0; n <= 14; ++n) {
      for (int64_t w = 1; w <= 5; ++w) {
        for (int64_t b = 1; b <= 4; ++b) {
          for (const bool drop_last : {false, true}) {
            CAPTURE(static_cast<int>(uneven));
            CAPTURE(n);
            CAPTURE(w);
            CAPTURE(b);
            CAPTURE(drop_last);
            const EpochPlan plan({.samples = n,
                                  .world_size = w,
                                  .batch_size = b,
                                  .accumulate = 2,
                                  .uneven = uneven,
                                  .drop_last = drop_last});
            // Deal whole lists by hand.
            std::vector<int64_t> left(static_cast<size_t>(w), 0);
            int64_t dealt = n;
            while (uneven == Uneven::pad && dealt % w != 0) ++dealt;
            while (uneven == Uneven::drop && dealt % w != 0) --dealt;
            for (int64_t q = 0; q < dealt; ++q) ++left[static_cast<size_t>(q % w)];
            for (int64_t rank = 0; rank < w; ++rank) CHECK_EQ(plan.rank_samples(rank), left[static_cast<size_t>(rank)]);
            // Take micro-batches until nothing (or no full batch on some rank) is left.
            int64_t m = 0, step_sum = 0, trained = 0;
            while (drop_last ? left.back() >= b : left.front() > 0) {
              int64_t sum = 0;
              for (size_t rank = 0; rank < left.size(); ++rank) {
                const int64_t take = std::min(left[rank], b);
                CHECK_EQ(plan.local_count(static_cast<int64_t>(rank), m), take);
                left[rank] -= take;
                sum += take;
              }
              CHECK_EQ(plan.micro_step_samples(m), sum);
              trained += sum;
              step_sum = m % 2 == 0 ? sum : step_sum + sum;
              ++m;
              if (m % 2 == 0) {
                CHECK_EQ(plan.step_samples(m / 2 - 1), step_sum);
                CHECK_EQ(plan.position_after(m / 2 - 1), trained);
                CHECK_EQ(plan.window_size(m / 2 - 1), 2);
              }
            }
            if (m % 2 == 1) {
              CHECK_EQ(plan.step_samples(m / 2), step_sum);
              CHECK_EQ(plan.window_size(m / 2), 1);
            }
            CHECK_EQ(plan.micro_steps(), m);
            CHECK_EQ(plan.steps(), (m + 1) / 2);
            CHECK_EQ(plan.consumed(), trained);
            CHECK_EQ(plan.dropped(), std::max<int64_t>(n - trained, 0));
            CHECK_EQ(plan.local_count(0, m), 0);
            CHECK_EQ(plan.step_samples((m + 1) / 2), 0);
          }
        }
      }
    }
  }
}

TEST_CASE("the rest of an epoch is dealt to another geometry") {
  const DataPlan plan({.samples = 23, .world_size = 4, .batch_size = 2, .accumulate = 2});
  const EpochPlan rest = plan.rest_of_epoch(6);
  CHECK_EQ(rest.dealt(), 17);
  CHECK_EQ(rest.rank_samples(0), 5);
  CHECK_EQ(rest.micro_steps(), 3);
  CHECK_EQ(rest.steps(), 2);
  CHECK_EQ(rest.position_after(0), 22);
  CHECK_EQ(rest.position_after(1), 23);
  CHECK_EQ(plan.rest_of_epoch(23).steps(), 0);
  CHECK_EQ(plan.rest_of_epoch(24).steps(), 0);
}

TEST_CASE("steps of a run end at max_steps or at the last epoch") {
  DataPlanSpec spec{.samples = 100, .world_size = 2, .batch_size = 8, .accumulate = 2, .epochs = 5};
  CHECK_EQ(DataPlan(spec).total_steps(), 20);  // 7 micro-steps, 4 steps an epoch
  spec.max_steps = 13;
  CHECK_EQ(DataPlan(spec).total_steps(), 13);
  spec.max_steps = 100;
  CHECK_EQ(DataPlan(spec).total_steps(), 20);
}

TEST_CASE("fields out of range are named in the error") {
  CHECK_EQ(error_of({.samples = 4, .accumulate = 0}), "accumulate must be a positive integer, found 0");
  CHECK_EQ(error_of({.samples = 4, .batch_size = -2}), "batch_size must be a positive integer, found -2");
  CHECK_EQ(error_of({.samples = 4, .world_size = 0}), "world_size must be a positive integer, found 0");
  CHECK_EQ(error_of({.samples = 4, .max_steps = 0}), "max_steps must be a positive integer, found 0");
  CHECK_NE(error_of({.samples = -1}), "");
  CHECK_NE(error_of({.samples = 4, .epochs = -1}), "");
  CHECK_THROWS_AS(EpochPlan({.samples = 4}, -1), Error);
}

TEST_CASE("products that overflow are errors and not wrong numbers") {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  CHECK_NE(error_of({.samples = kHuge}), "");
  CHECK_NE(error_of({.samples = 4, .batch_size = kHuge, .accumulate = 2}), "");
  CHECK_NE(error_of({.samples = 4, .world_size = 1000, .batch_size = kHuge / 100}), "");
  CHECK_NE(error_of({.samples = 4, .epochs = kHuge}), "");
  CHECK_EQ(error_of({.samples = int64_t{1} << 48, .epochs = 1000}), "");
}

TEST_CASE("uneven is read from its three words") {
  CHECK_EQ(parse_uneven("exact"), Uneven::exact);
  CHECK_EQ(parse_uneven("pad"), Uneven::pad);
  CHECK_EQ(parse_uneven("drop"), Uneven::drop);
  CHECK_THROWS_AS(parse_uneven("Pad"), Error);
}
