#include "dist/bucket_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace lockstep;

namespace {

// Parameters of the given sizes (floats), finished last first.
ParameterStore store_of(const std::vector<int64_t>& sizes) {
  ParameterStore store;
  std::vector<ParameterId> order;
  for (int64_t size : sizes)
    order.insert(order.begin(), store.add_parameter(fmt::format("p{}", order.size()), Shape{size}));
  store.lay_out(order, Buffer::host);
  return store;
}

}  // namespace

TEST_CASE("buckets follow the order in which backward finishes and cover every parameter once") {
  const ParameterStore store = store_of({100, 3, 5000, 7, 40});
  const auto buckets = plan_buckets(store, {.first_bytes = 64, .bytes = 1024});
  std::vector<ParameterId> members;
  size_t end = 0;
  for (const Bucket& bucket : buckets) {
    CHECK(bucket.offset >= end);
    end = bucket.offset + bucket.count;
    members.insert(members.end(), bucket.members.begin(), bucket.members.end());
  }
  CHECK(members == std::vector<ParameterId>{4, 3, 2, 1, 0});
  CHECK(end <= store.gradients().size());
}

TEST_CASE("the first bucket has its own cap and a bucket may overshoot") {
  // Finished in the order 40, 7, 5000, 3, 100 floats.
  const ParameterStore store = store_of({100, 3, 5000, 7, 40});
  const auto buckets = plan_buckets(store, {.first_bytes = 160, .bytes = 1024});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].members == std::vector<ParameterId>{4});     // 160 bytes reach the first cap
  CHECK(buckets[1].members == std::vector<ParameterId>{3, 2});  // 28 bytes, then 20,000 overshoot
  CHECK(buckets[2].members == std::vector<ParameterId>{1, 0});
}

TEST_CASE("the MNIST network's gradients split as DDP splits them after its rebuild") {
  // conv1.w conv1.b conv2.w conv2.b fc1.w fc1.b fc2.w fc2.b, finished last first.
  const ParameterStore store = store_of({288, 32, 18432, 64, 1179648, 128, 1280, 10});
  const auto buckets = plan_buckets(store, {});
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].members == std::vector<ParameterId>{7, 6, 5, 4});
  CHECK(buckets[1].members == std::vector<ParameterId>{3, 2, 1, 0});
}
