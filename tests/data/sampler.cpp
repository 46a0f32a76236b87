// The sampler's walk: micro-batches of all ranks, positions, resume with another geometry, and no allocation per step.
#include "data/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"

using namespace lockstep;
using Rows = std::vector<int64_t>;

namespace {

Rows copy(std::span<const int64_t> rows) { return Rows(rows.begin(), rows.end()); }

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

Rows iota_rows(int64_t n) {
  Rows rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Rows of all ranks in the micro-steps [from, to) of an epoch that goes on at `position`.
Rows rows_of_all_ranks(const DataPlanSpec& spec, int64_t epoch, int64_t position, int64_t from, int64_t to) {
  Rows seen;
  for (int64_t rank = 0; rank < spec.world_size; ++rank) {
    Sampler sampler(spec, rank, {});
    sampler.set_epoch(epoch);
    sampler.seek(position);
    for (int64_t m = 0; m < to; ++m) {
      const auto rows = sampler.next();
      if (m >= from) seen.insert(seen.end(), rows.begin(), rows.end());
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("micro-batches concatenate to the distributed order") {
  for (const Uneven uneven : {Uneven::exact, Uneven::pad, Uneven::drop}) {
    for (const int64_t samples : {1, 5, 16, 23}) {
      for (const int64_t world_size : {1, 2, 3, 8}) {
        const DataPlanSpec spec{.samples = samples, .world_size = world_size, .batch_size = 3, .uneven = uneven};
        const EpochPlan plan(spec);
        for (int64_t rank = 0; rank < world_size; ++rank) {
          CAPTURE(samples);
          CAPTURE(world_size);
          CAPTURE(rank);
          Sampler sampler(spec, rank, {.seed = 4});
          sampler.set_epoch(2);
          Rows seen;
          for (int64_t m = 0; m < plan.micro_steps(); ++m) {
            const auto rows = sampler.next(3);
            CHECK_EQ(static_cast<int64_t>(rows.size()), plan.local_count(rank, m));
            CHECK_EQ(sampler.position(), plan.position_after(m));
            seen.insert(seen.end(), rows.begin(), rows.end());
          }
          CHECK_EQ(seen, distributed_order(samples, world_size, rank, true, 4, 2, uneven));
          CHECK(sampler.next(3).empty());
          CHECK_EQ(sampler.position(), plan.consumed());
        }
      }
    }
  }
}

TEST_CASE("ranks without rows get empty micro-batches and keep step") {
  // 9 samples on 8 ranks one at a time: the second micro-step has data on rank 0 only.
  const DataPlanSpec spec{.samples = 9, .world_size = 8, .batch_size = 1};
  CHECK_EQ(EpochPlan(spec).micro_steps(), 2);
  for (int64_t rank = 0; rank < 8; ++rank) {
    Sampler sampler(spec, rank, {});
    CHECK_EQ(sampler.next(1).size(), 1U);
    CHECK_EQ(sampler.next(1).size(), rank == 0 ? 1U : 0U);
    CHECK_EQ(sampler.position(), 9);
  }
}

TEST_CASE("epochs differ and hold every sample once and repeat exactly") {
  const DataPlanSpec spec{.samples = 22, .world_size = 2, .batch_size = 4};
  std::map<int64_t, Rows> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    epochs[epoch] = rows_of_all_ranks(spec, epoch, 0, 0, EpochPlan(spec).micro_steps());
    CHECK_EQ(sorted(epochs[epoch]), iota_rows(22));
    CHECK_EQ(epochs[epoch], rows_of_all_ranks(spec, epoch, 0, 0, EpochPlan(spec).micro_steps()));
  }
  CHECK_NE(epochs[0], epochs[1]);
  CHECK_NE(epochs[1], epochs[2]);
}

TEST_CASE("padding keeps every sample where samples and ranks do not divide") {
  const std::vector<std::pair<int64_t, int64_t>> geometries = {{1, 4}, {3, 4}, {7, 2}};
  for (const auto& [samples, world_size] : geometries) {
    const DataPlanSpec spec{.samples = samples, .world_size = world_size, .batch_size = 2, .uneven = Uneven::pad};
    Rows seen = sorted(rows_of_all_ranks(spec, 0, 0, 0, EpochPlan(spec).micro_steps()));
    CHECK_EQ(static_cast<int64_t>(seen.size()), EpochPlan(spec).dealt());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    CHECK_EQ(seen, iota_rows(samples));
  }
}

TEST_CASE("5 samples on 8 ranks with batch 2") {
  DataPlanSpec spec{.samples = 5, .world_size = 8, .batch_size = 2, .uneven = Uneven::pad, .drop_last = true};
  for (int64_t rank = 0; rank < 8; ++rank) {
    spec.drop_last = true;
    Sampler dropping(spec, rank, {});
    CHECK(dropping.next(2).empty());
    CHECK_EQ(dropping.position(), 0);
    spec.drop_last = false;
    Sampler keeping(spec, rank, {});
    CHECK_EQ(copy(keeping.next(2)), distributed_order(5, 8, rank, true, 0, 0, Uneven::pad));
  }
}

TEST_CASE("every split of a global batch sees the same samples in every step") {
  const DataPlanSpec oracle{.samples = 50, .world_size = 1, .batch_size = 8};
  for (const auto& [world_size, batch] : std::vector<std::pair<int64_t, int64_t>>{{2, 4}, {4, 2}, {8, 1}}) {
    const DataPlanSpec spec{.samples = 50, .world_size = world_size, .batch_size = batch};
    for (int64_t m = 0; m < EpochPlan(oracle).micro_steps(); ++m) {
      CHECK_EQ(sorted(rows_of_all_ranks(spec, 1, 0, m, m + 1)), sorted(rows_of_all_ranks(oracle, 1, 0, m, m + 1)));
    }
  }
}

TEST_CASE("stopping at a position and going on there on another world visits each sample once") {
  const DataPlanSpec before{.samples = 23, .world_size = 2, .batch_size = 3};
  for (const int64_t steps : {1, 2, 3}) {
    Rows seen = rows_of_all_ranks(before, 1, 0, 0, steps);
    const int64_t position = EpochPlan(before).position_after(steps - 1);
    CHECK_EQ(static_cast<int64_t>(seen.size()), position);
    for (const auto& [world_size, batch] : std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {2, 3}, {4, 1}, {8, 2}}) {
      const DataPlanSpec after{.samples = 23, .world_size = world_size, .batch_size = batch};
      Rows both = rows_of_all_ranks(after, 1, position, 0, EpochPlan(after, position).micro_steps());
      both.insert(both.end(), seen.begin(), seen.end());
      CHECK_EQ(sorted(both), iota_rows(23));
    }
  }
}

TEST_CASE("going on with the same geometry repeats the rest exactly") {
  for (const Uneven uneven : {Uneven::exact, Uneven::pad, Uneven::drop}) {
    const DataPlanSpec spec{.samples = 23, .world_size = 4, .batch_size = 2, .uneven = uneven};
    for (int64_t rank = 0; rank < 4; ++rank) {
      Sampler straight(spec, rank, {.seed = 9}), resumed(spec, rank, {.seed = 9});
      straight.set_epoch(5);
      straight.next(2);
      resumed.set_epoch(5);
      resumed.seek(straight.position());
      for (int64_t m = 1; m < EpochPlan(spec).micro_steps(); ++m)
        CHECK_EQ(copy(resumed.next(2)), copy(straight.next(2)));
    }
  }
}

TEST_CASE("one global permutation is dealt to the ranks") {
  Generator script(42);
  Rows list(17);
  dataloader_order(script, true, list);
  for (int64_t rank = 0; rank < 2; ++rank) {
    Sampler sampler({.samples = 17, .world_size = 2, .batch_size = 20}, rank, {.global = Generator(42)});
    Rows expected;
    for (size_t at = static_cast<size_t>(rank); at < list.size(); at += 2) expected.push_back(list[at]);
    CHECK_EQ(copy(sampler.next(20)), expected);
  }
}

TEST_CASE("epochs and batches reuse the sampler's memory") {
  Sampler sampler({.samples = 100, .world_size = 3, .batch_size = 7}, 1, {});
  const int64_t* memory = sampler.next(7).data();
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    sampler.set_epoch(epoch);
    for (int m = 0; m < 4; ++m) CHECK_EQ(sampler.next(7).data(), memory);
  }
}

TEST_CASE("a wrong rank or batch or position is an error") {
  const DataPlanSpec spec{.samples = 10, .world_size = 2, .batch_size = 4};
  CHECK_THROWS_AS(Sampler(spec, 2, {}), Error);
  CHECK_THROWS_AS(Sampler(spec, -1, {}), Error);
  Sampler sampler(spec, 0, {});
  CHECK_THROWS_AS(sampler.next(0), Error);
  CHECK_THROWS_AS(sampler.next(5), Error);
  CHECK_THROWS_AS(sampler.seek(-1), Error);
  CHECK_THROWS_AS(sampler.set_epoch(-1), Error);
}
