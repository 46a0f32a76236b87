// Batches on their way to a GPU, and the mistakes with them that the simulated one finds out.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_feed.h"
#include "core/error.h"
#include "sim/feed_mistakes.h"
#include "sim/runtime/control.h"

using namespace lockstep;

namespace {

constexpr size_t floats = 500;

// Ten batches through the feed; the mean of what plans read of each.
std::vector<double> run(uint64_t seed, const test::FeedMistakes& mistakes) {
  sim::reset({.seed = seed});
  CudaBackend gpu({.index = 0});
  if (mistakes.ignored_wait >= 0) sim::ignore_call("cudaStreamWaitEvent", mistakes.ignored_wait);
  const auto feed = gpu.make_feed(floats * sizeof(float), sizeof(float));
  const Buffer x = feed->allocate(floats * sizeof(float)), target = feed->allocate(sizeof(float));
  const Buffer seen = gpu.allocate(10 * floats * sizeof(float));
  for (size_t batch = 0; batch < 10; ++batch) {
    if (!mistakes.reuse_host) feed->release();
    std::ranges::fill(x.as<float>(), static_cast<float>(batch + 1));
    const Feed::Batch fed = feed->upload(x.data(), x.bytes(), target.data(), target.bytes());
    gpu.copy(DType::f32, floats, fed.x, seen.as<float>().data() + batch * floats);
  }
  return test::means_of_batches(gpu, seen, floats);
}

}  // namespace

TEST_CASE("plans read every batch that was uploaded whatever the order of the streams") {
  CHECK(test::wrong_runs(run, {}) == 0);
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("a batch whose memory is reused before its copy ends is caught") {
  CHECK(test::wrong_runs(run, {.reuse_host = true}) > 0);
}

TEST_CASE("a deleted wait between a batch's upload and its use is caught") {
  test::check_deleted_waits_are_caught(run);
}

TEST_CASE("a batch that is larger than was said is refused") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const auto feed = gpu.make_feed(8, 8);
  CHECK_THROWS_AS(feed->upload(nullptr, 16, nullptr, 8), Error);
}

TEST_CASE("numbers go to a GPU and come back and move there") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    sim::reset({.seed = seed});
    const CudaBackend gpu({.index = 0});
    const Memory& memory = gpu.memory();
    CHECK_FALSE(memory.host());
    std::vector<float> values(1'000'000);  // several pieces
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const Buffer a = memory.allocate(values.size() * sizeof(float)), b = memory.allocate(a.bytes());
    CHECK(memory.downloaded(a.as<float>()) == std::vector<float>(values.size()));
    memory.upload(a.as<float>(), values);
    memory.copy(b.as<float>(), a.as<float>());
    memory.zero(a.as<float>().first(10));
    std::vector<float> scratch;
    const std::span<const float> read = memory.readable(b.as<float>(), scratch);
    CHECK(std::ranges::equal(read, values));
    CHECK(memory.downloaded(a.as<float>())[9] == 0);
    gpu.optimizer_ops().swap(values.size(), a.as<float>().data(), b.as<float>().data());
    CHECK(memory.downloaded(a.as<float>()) == values);
    CHECK(sim::last_misuse() == "");
  }
}
