// Orders of an epoch against golden/sampler.json and the published tables of DistributedSampler.
#include "data/epoch_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "support/golden.h"

using namespace lockstep;
using lockstep::test::flat_i64;
using lockstep::test::golden;
using nlohmann::json;
using Rows = std::vector<int64_t>;

namespace {

std::vector<Rows> all_ranks(int64_t samples, int64_t world_size, int64_t epoch, Uneven uneven, bool shuffle = true) {
  std::vector<Rows> ranks;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    ranks.push_back(distributed_order(samples, world_size, rank, shuffle, 0, epoch, uneven));
  }
  return ranks;
}

Generator generator_of(const json& test_case) {
  return Generator(static_cast<uint64_t>(test_case["seed"].get<int64_t>()));
}

void check_batches(const Rows& order, const json& test_case, const json& batches) {
  const auto batch = test_case["batch"].get<size_t>();
  const size_t whole = order.size() / batch * batch;
  const size_t used = test_case["drop_last"].get<bool>() ? whole : order.size();
  CHECK_EQ(Rows(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used)), flat_i64(batches));
  CHECK_EQ(batches.size(), test_case["len"].get<size_t>());
  for (size_t i = 0; i < batches.size(); ++i) CHECK_EQ(batches[i].size(), std::min(batch, used - i * batch));
}

}  // namespace

TEST_CASE("distributed order equals DistributedSampler in every golden case") {
  const json cases = golden("sampler.json")["distributed"];
  CHECK_EQ(cases.size(), 496U);
  for (const json& c : cases) {
    CAPTURE(c.dump().substr(0, 100));
    const auto world_size = c["W"].get<int64_t>();
    REQUIRE_EQ(c["ranks"].size(), static_cast<size_t>(world_size));
    for (int64_t rank = 0; rank < world_size; ++rank) {
      const Rows rows = distributed_order(c["N"].get<int64_t>(), world_size, rank, c["shuffle"].get<bool>(),
                                          c["seed"].get<uint64_t>(), c["epoch"].get<int64_t>(),
                                          c["drop_last"].get<bool>() ? Uneven::drop : Uneven::pad);
      CHECK_EQ(rows, flat_i64(c["ranks"][static_cast<size_t>(rank)]));
    }
  }
}

TEST_CASE("loader order equals DataLoader in every golden case") {
  const json cases = golden("sampler.json")["dataloader"];
  CHECK_EQ(cases.size(), 17U);
  for (const json& c : cases) {
    CAPTURE(c.dump().substr(0, 100));
    Generator generator = generator_of(c);
    const auto samples = c["N"].get<int64_t>();
    Rows order(c.value("num_samples", c["N"].get<size_t>()));
    for (const json& batches : c["epochs"]) {
      if (c.value("replacement", false)) {
        dataloader_order_with_replacement(generator, samples, order);
      } else if (c["generator"] == "own") {
        dataloader_order_own_generator(generator, order);
      } else {
        dataloader_order(generator, c["shuffle"].get<bool>(), order);
      }
      check_batches(order, c, batches);
    }
    const json& next = c.contains("next_rand") ? c["next_rand"] : c["next_rand_of_generator"];
    CHECK_EQ(generator.uniform_float(), static_cast<float>(next.get<double>()));
  }
}

TEST_CASE("epoch order from a global generator is any epoch of the DataLoader") {
  const json cases = golden("sampler.json")["dataloader"];
  for (const json& c : cases) {
    if (c["generator"] == "own" || !c["shuffle"].get<bool>() || c.value("replacement", false)) continue;
    Rows order(c["N"].get<size_t>());
    for (size_t epoch = c["epochs"].size(); epoch-- > 0;) {  // backwards: no epoch depends on an earlier call
      epoch_order({.global = generator_of(c)}, static_cast<int64_t>(epoch), order);
      check_batches(order, c, c["epochs"][epoch]);
    }
  }
}

TEST_CASE("words drawn between epochs move the later orders only") {
  Generator script(123);
  Rows first(10), second(10), order(10);
  dataloader_order(script, true, first);
  script.discard(2);  // one pass over a validation loader
  dataloader_order(script, true, second);
  const SamplerSettings settings{.global = Generator(123), .words_between_epochs = 2};
  epoch_order(settings, 0, order);
  CHECK_EQ(order, first);
  epoch_order(settings, 1, order);
  CHECK_EQ(order, second);
}

TEST_CASE("published table of 16 samples on 4 ranks") {
  CHECK_EQ(all_ranks(16, 4, 0, Uneven::pad),
           std::vector<Rows>{{12, 11, 2, 4}, {10, 8, 14, 3}, {9, 13, 15, 7}, {6, 5, 0, 1}});
  CHECK_EQ(all_ranks(16, 4, 1, Uneven::pad),
           std::vector<Rows>{{5, 11, 1, 10}, {15, 2, 0, 3}, {6, 7, 9, 13}, {4, 12, 8, 14}});
  CHECK_EQ(all_ranks(16, 4, 2, Uneven::pad),
           std::vector<Rows>{{8, 6, 4, 15}, {13, 7, 2, 14}, {1, 0, 10, 5}, {9, 11, 12, 3}});
}

TEST_CASE("published tables of padding and dropping") {
  CHECK_EQ(all_ranks(5, 2, 2, Uneven::pad), std::vector<Rows>{{3, 1, 2}, {4, 0, 3}});
  CHECK_EQ(all_ranks(5, 3, 0, Uneven::pad), std::vector<Rows>{{4, 3}, {0, 2}, {1, 4}});
  CHECK_EQ(all_ranks(10, 4, 0, Uneven::drop), std::vector<Rows>{{4, 3}, {1, 9}, {7, 0}, {5, 8}});
  CHECK_EQ(all_ranks(16, 5, 0, Uneven::drop),
           std::vector<Rows>{{12, 8, 15}, {10, 13, 0}, {9, 5, 4}, {6, 2, 3}, {11, 14, 7}});
  CHECK_EQ(all_ranks(10, 4, 0, Uneven::pad, false), std::vector<Rows>{{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}});
}

TEST_CASE("fewer samples than ranks") {
  CHECK_EQ(all_ranks(5, 8, 0, Uneven::pad), std::vector<Rows>{{4}, {0}, {1}, {3}, {2}, {4}, {0}, {1}});
  CHECK_EQ(all_ranks(3, 8, 0, Uneven::pad), std::vector<Rows>{{2}, {0}, {1}, {2}, {0}, {1}, {2}, {0}});
  CHECK_EQ(all_ranks(1, 4, 0, Uneven::pad), std::vector<Rows>{{0}, {0}, {0}, {0}});
  CHECK_EQ(all_ranks(5, 8, 0, Uneven::drop), std::vector<Rows>(8));
  CHECK_EQ(all_ranks(5, 8, 0, Uneven::exact), std::vector<Rows>{{4}, {0}, {1}, {3}, {2}, {}, {}, {}});
  CHECK_EQ(all_ranks(0, 2, 0, Uneven::pad), std::vector<Rows>(2));
}

TEST_CASE("exact sharding deals every sample once") {
  for (const int64_t world_size : {1, 2, 3, 4, 8}) {
    Rows seen;
    for (const Rows& rows : all_ranks(22, world_size, 1, Uneven::exact))
      seen.insert(seen.end(), rows.begin(), rows.end());
    std::sort(seen.begin(), seen.end());
    Rows every(22);
    std::iota(every.begin(), every.end(), 0);
    CHECK_EQ(seen, every);
  }
}

TEST_CASE("without reshuffle every epoch repeats epoch 0") {
  for (const bool global : {false, true}) {
    SamplerSettings settings{.seed = 3, .reshuffle = false};
    if (global) settings.global = Generator(3);
    Rows first(20), third(20);
    epoch_order(settings, 0, first);
    epoch_order(settings, 2, third);
    CHECK_EQ(first, third);
    settings.reshuffle = true;
    epoch_order(settings, 2, third);
    CHECK_NE(first, third);
  }
}

TEST_CASE("a rank outside the world is an error") {
  CHECK_THROWS_AS(distributed_order(10, 2, 2, true, 0, 0, Uneven::pad), Error);
  CHECK_THROWS_AS(distributed_order(10, 2, -1, true, 0, 0, Uneven::pad), Error);
  Rows order(3);
  CHECK_THROWS_AS(epoch_order({}, -1, order), Error);
}
