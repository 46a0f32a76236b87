// Single values per channel found from the plan alone: against a walk over every micro-batch of the epoch.
#include "train/batch_norm_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace lockstep;

namespace {

const std::vector<BatchNormSite> kOne{{.layer = "wide", .values_per_sample = 4},
                                      {.layer = "bn", .values_per_sample = 1}};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Step of the first micro-batch with one sample, by looking at all of them; -1: none.
int64_t walk(const DataPlan& plan, bool across_ranks) {
  const EpochPlan& epoch = plan.epoch();
  for (int64_t m = 0; m < epoch.micro_steps(); ++m) {
    const int64_t step = m / plan.spec().accumulate;
    if (step >= plan.total_steps()) return -1;
    if (across_ranks && epoch.micro_step_samples(m) == 1) return step;
    for (int64_t rank = 0; rank < plan.spec().world_size && !across_ranks; ++rank)
      if (epoch.local_count(rank, m) == 1) return step;
  }
  return -1;
}

}  // namespace

TEST_CASE("the first batch of one value is the one that a walk over all batches finds") {
  int found = 0, none = 0;
  for (int64_t samples = 1; samples <= 26; ++samples)
    for (const int64_t world_size : {1, 2, 3, 5})
      for (const int64_t batch : {1, 2, 3, 4})
        for (const int64_t accumulate : {1, 3})
          for (const Uneven uneven : {Uneven::exact, Uneven::pad, Uneven::drop})
            for (const bool drop_last : {false, true})
              for (const std::optional<int64_t> most : {std::optional<int64_t>{}, std::optional<int64_t>{2}}) {
                const DataPlan plan({.samples = samples,
                                     .world_size = world_size,
                                     .batch_size = batch,
                                     .accumulate = accumulate,
                                     .uneven = uneven,
                                     .drop_last = drop_last,
                                     .max_steps = most});
                for (const bool across_ranks : {false, true}) {
                  const std::string text = one_value_text(plan, kOne, across_ranks);
                  const int64_t step = walk(plan, across_ranks);
                  CAPTURE(text);
                  CAPTURE(samples);
                  CAPTURE(world_size);
                  CAPTURE(batch);
                  REQUIRE_EQ(text.empty(), step < 0);
                  if (step >= 0) REQUIRE(contains(text, fmt::format("step {} ", step)));
                  ++(step < 0 ? none : found);
                }
              }
  CHECK_GT(found, 500);
  CHECK_GT(none, 500);
}

TEST_CASE("the text names layer and step and rank and the way out") {
  // Ranks 0 and 1 of 3 have 7 samples, rank 2 has 6.
  const DataPlan plan({.samples = 20, .world_size = 3, .batch_size = 3});
  CHECK_EQ(one_value_text(plan, kOne, false),
           "Expected more than 1 value per channel when training, but in step 2 rank 0 has one sample for the batch "
           "norm 'bn': set sampler.drop_last: true, or another train.batch_size");
  CHECK_EQ(one_value_text(plan, kOne, true), "");  // two samples together
  const DataPlan window({.samples = 19, .world_size = 3, .batch_size = 3, .accumulate = 2});
  CHECK(contains(one_value_text(window, kOne, true), "in micro-step 0 of step 1 all 3 ranks together have one sample"));
  const DataPlan singles({.samples = 20, .world_size = 2, .batch_size = 1});
  CHECK(contains(one_value_text(singles, kOne, false), "take a larger train.batch_size"));
}

TEST_CASE("a map of several values or no batch norm needs no second sample") {
  const DataPlan plan({.samples = 5, .batch_size = 1});
  CHECK_EQ(one_value_text(plan, std::vector<BatchNormSite>{kOne[0]}, false), "");
  CHECK_EQ(one_value_text(plan, {}, false), "");
}

TEST_CASE("batch norms are found with their values per channel") {
  ModelSpec model;
  const auto layer = [&](const std::string& kind) -> LayerSpec& {
    model.layers.emplace_back().kind = kind;
    return model.layers.back();
  };
  LayerSpec& conv = layer("conv2d");
  conv.out = 2, conv.kernel = {3, 3};
  layer("batch_norm").name = "bn1";
  layer("relu");
  layer("flatten");
  layer("linear").out = 3;
  layer("batch_norm");
  const auto sites = batch_norm_sites(model, Shape{1, 6, 5});
  REQUIRE_EQ(sites.size(), 2);
  CHECK_EQ(sites[0].layer, "bn1");
  CHECK_EQ(sites[0].values_per_sample, 4 * 3);
  CHECK_EQ(sites[1].layer, "5");
  CHECK_EQ(sites[1].values_per_sample, 1);
}
