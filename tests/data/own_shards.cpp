// Epochs over data that every rank has for itself.
#include "data/own_shards.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/error.h"
#include "data/data_plan.h"

using namespace lockstep;

namespace {

DataPlanSpec spec(std::vector<int64_t> own, int64_t batch, int64_t accumulate = 1,
                  EarlyEnd early_end = EarlyEnd::join) {
  return {.samples = std::accumulate(own.begin(), own.end(), int64_t{0}),
          .world_size = static_cast<int64_t>(own.size()),
          .batch_size = batch,
          .accumulate = accumulate,
          .own = std::move(own),
          .early_end = early_end};
}

}  // namespace

TEST_CASE("join counts every sample and goes on to the longest rank") {
  const EpochPlan plan(spec({5, 2, 0}, 2, 2));
  CHECK(plan.micro_steps() == 3);
  CHECK(plan.steps() == 2);
  CHECK(plan.step_samples(0) == 4 + 2);
  CHECK(plan.step_samples(1) == 1);
  CHECK(plan.local_count(0, 2) == 1);
  CHECK(plan.local_count(1, 1) == 0);
  CHECK(plan.micro_step_samples(1) == 2);
  CHECK(plan.consumed() == 7);
  CHECK(plan.dropped() == 0);
  CHECK(plan.padding() == 0);
  CHECK(plan.empty_on_some_rank());
  CHECK_FALSE(plan.empty_on_every_rank());
}

TEST_CASE("stop ends with the shortest rank") {
  const EpochPlan plan(spec({5, 3, 9}, 2, 1, EarlyEnd::stop));
  CHECK(plan.micro_steps() == 2);
  CHECK(plan.step_samples(1) == 2 + 1 + 2);
  CHECK(plan.consumed() == 4 + 3 + 4);
  CHECK(plan.dropped() == 1 + 0 + 5);
  CHECK(plan.rank_samples(2) == 9);
  CHECK(plan.rank_consumed(2) == 4);
}

TEST_CASE("error names the rank that runs out first") {
  CHECK_THROWS_WITH(EpochPlan(spec({5, 3, 9}, 2, 1, EarlyEnd::error)),
                    "rank 1 exhausts all its inputs after 2 of 5 micro-steps: it has 3 samples, rank 2 has 9 "
                    "(sampler.early_end: join goes on with the other ranks, stop ends the epoch there for all)");
  CHECK(EpochPlan(spec({5, 6}, 2, 1, EarlyEnd::error)).micro_steps() == 3);  // both need three
}

TEST_CASE("drop_last leaves out each rank's own short batch") {
  DataPlanSpec s = spec({5, 3, 1}, 2);
  s.drop_last = true;
  const EpochPlan plan(s);
  CHECK(plan.micro_steps() == 2);
  CHECK(plan.consumed() == 4 + 2);
  CHECK(plan.dropped() == 3);
  CHECK(plan.local_count(1, 1) == 0);
  CHECK(plan.empty_on_some_rank());
}

TEST_CASE("an epoch of own data goes on from the end of any micro-step") {
  for (const EarlyEnd early_end : {EarlyEnd::join, EarlyEnd::stop}) {
    const DataPlanSpec s = spec({7, 4, 9}, 2, 2, early_end);
    const EpochPlan whole(s);
    int64_t position = 0;
    for (int64_t k = 0; k < whole.steps(); ++k) {
      const EpochPlan rest(s, position);
      CHECK(rest.steps() == whole.steps() - k);
      for (int64_t later = k; later < whole.steps(); ++later) {
        CHECK(rest.step_samples(later - k) == whole.step_samples(later));
        CHECK(rest.position_after(later - k) == whole.position_after(later));
      }
      position = whole.position_after(k);
    }
    CHECK(position == whole.consumed());
    CHECK(EpochPlan(s, position).micro_steps() == 0);
    CHECK_THROWS_WITH(EpochPlan(s, 1), "sample 1 of the epoch is not the end of a micro-step of the ranks");
  }
}

TEST_CASE("sizes that do not belong to the run are refused") {
  DataPlanSpec s = spec({3, 4}, 1);
  s.world_size = 3;
  CHECK_THROWS_WITH(EpochPlan{s}, "data of 2 ranks for 3 of them");
  s = spec({3, 4}, 1);
  s.samples = 8;
  CHECK_THROWS_WITH(EpochPlan{s}, "the ranks' samples do not add up to 8");
  CHECK_THROWS_WITH(parse_early_end("wait"), "early_end: expected join, stop or error, found 'wait'");
}
