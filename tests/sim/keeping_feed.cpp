// Batches that a GPU makes of a data set that it keeps: the bits of those that the host assembles, rows that there are
// not refused, and the mistakes that the simulated GPU finds out.
#include <doctest/doctest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/factory.h"
#include "core/error.h"
#include "data/factory.h"
#include "data/files.h"
#include "gpu/kept_batches.h"
#include "sim/feed_mistakes.h"
#include "sim/runtime/control.h"
#include "sim/runtime/kernel.h"

using namespace lockstep;
using test::error_of;

namespace {

void compare(const Dataset& dataset, const AugmentationSettings& augment = {}) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    sim::reset({.seed = seed});
    CudaBackend gpu({.index = 0});
    CHECK(test::same_batches(gpu, dataset, augment, static_cast<uint32_t>(seed)));
    CHECK(sim::last_misuse() == "");
  }
}

}  // namespace

TEST_CASE("a GPU that keeps bytes makes the host's batches of them") {
  const test::TempDir dir;
  DatasetSettings settings = test::byte_images(dir);
  compare(*make_dataset(settings, 0));
  settings.targets = WantedTargets::values;  // labels as numbers
  settings.first = 4, settings.count = 8;
  compare(*make_dataset(settings, 0));
}

TEST_CASE("a GPU that keeps images draws them as the host does") {
  const test::TempDir dir;
  const auto bytes = make_dataset(test::byte_images(dir), 0);
  compare(*bytes, test::kCrops);
  compare(*bytes, {.flip = 1});
  compare(*bytes, {.crop_padding = 3, .fill = 1, .seed = 2, .owner = 1});
  DatasetSettings floats{.kind = "synthetic", .name = "random", .samples = 11, .classes = 3, .shape = {2, 6, 5}};
  compare(*make_dataset(floats, 0), test::kCrops);
}

TEST_CASE("a GPU that keeps numbers makes the host's batches of them") {
  const test::TempDir dir;
  std::string csv = "a,b,c,y\n";
  for (int row = 0; row < 31; ++row) csv += fmt::format("{},{},{},{}\n", row * 0.37, -row, 1e-3 * row, row / 3.0);
  compare(*make_dataset({.kind = "csv", .file = dir.write("t.csv", csv), .mean = 2, .std = 3}, 0));
  compare(*make_dataset(
      {.kind = "synthetic", .name = "normal_regression", .samples = 19, .shape = {300}, .target_width = 5}, 0));
  compare(*make_dataset(
      {.kind = "synthetic", .name = "random", .samples = 19, .classes = 4, .shape = {1}, .first = 3, .count = 9}, 0));
}

TEST_CASE("a GPU refuses rows that it does not keep") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const auto dataset = make_dataset({.kind = "synthetic", .name = "identity", .samples = 5}, 0);
  const auto feed = gpu.make_keeping_feed(*dataset->stored(), {}, 3);
  const Buffer memory = feed->allocate(4 * sizeof(PickedRow));
  const std::span<PickedRow> picked = memory.as<PickedRow>();
  const auto gathering = [&](int64_t row) {
    picked[2].row = row;
    return error_of([&] { feed->gather(picked.first(3)); });
  };
  CHECK(gathering(4) == "no error");
  CHECK(gathering(5) == "row 5 of a data set of 5 samples");
  CHECK(gathering(-1) == "row -1 of a data set of 5 samples");
  CHECK(gathering(int64_t{1} << 40) == "row 1099511627776 of a data set of 5 samples");
  CHECK(error_of([&] { feed->gather(picked); }) == "a batch of 4 rows: expected at most 3");
  CHECK(error_of([&] { gpu.make_feed(8, 8)->gather(picked); }) == "a batch of 4 rows: this feed keeps no data set");
  CHECK(error_of([&] { gpu.make_keeping_feed(*dataset->stored(), {.channels = 1, .height = 2, .width = 2}, 3); }) ==
        "images of 1 x 2 x 2: expected 1 numbers, and fewer than 2^32");
  const auto cpu = make_backend("cpu", {});
  CHECK(error_of([&] { cpu->make_keeping_feed(*dataset->stored(), {}, 3); }) == "a data set of 5 rows: cpu keeps none");
}

namespace {

// Ten batches, batch k of row k alone, which holds the number k; what plans read of each.
std::vector<double> run(uint64_t seed, const test::FeedMistakes& mistakes) {
  constexpr size_t rows = 500;
  sim::reset({.seed = seed});
  CudaBackend gpu({.index = 0});
  const auto dataset = make_dataset({.kind = "synthetic", .name = "identity", .samples = 11}, 0);
  const auto feed = gpu.make_keeping_feed(*dataset->stored(), {}, rows);
  const Buffer memory = feed->allocate(rows * sizeof(PickedRow));
  const Buffer seen = gpu.allocate(10 * rows * sizeof(float));
  if (mistakes.ignored_wait >= 0) sim::ignore_call("cudaStreamWaitEvent", mistakes.ignored_wait);
  for (size_t batch = 0; batch < 10; ++batch) {
    if (!mistakes.reuse_host) feed->release();
    for (PickedRow& row : memory.as<PickedRow>()) row.row = static_cast<int64_t>(batch) + 1;
    const Feed::Batch fed = feed->gather(memory.as<PickedRow>());
    gpu.copy(DType::f32, rows, fed.x, seen.as<float>().data() + batch * rows);
  }
  return test::means_of_batches(gpu, seen, rows);
}

}  // namespace

TEST_CASE("plans read every batch that a GPU made whatever the order of the streams") {
  CHECK(test::wrong_runs(run, {}) == 0);
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("picked rows that are written again before their copy ends are caught") {
  CHECK(test::wrong_runs(run, {.reuse_host = true}) > 0);
}

TEST_CASE("a deleted wait between a batch's making and its use is caught") {
  test::check_deleted_waits_are_caught(run);
}

TEST_CASE("the loader has its rows back while the GPU still computes with earlier batches") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const auto dataset = make_dataset({.kind = "synthetic", .name = "identity", .samples = 5}, 0);
  const auto feed = gpu.make_keeping_feed(*dataset->stored(), {}, 1);
  const Buffer memory = feed->allocate(sizeof(PickedRow));
  gpu.gpu()->set_watch([](double seconds) {
    if (seconds > 0.05) throw Error("waited for what is computed");
  });
  CHECK_NOTHROW(feed->gather(memory.as<PickedRow>()));
  sim::launch_stuck(gpu.gpu()->compute().get());
  CHECK_NOTHROW(feed->release());
  CHECK_NOTHROW(feed->gather(memory.as<PickedRow>()));
  CHECK_NOTHROW(feed->release());
  CHECK_NOTHROW(feed->gather(memory.as<PickedRow>()));  // whose place is still in use
  CHECK_NOTHROW(feed->release());
  sim::reset({});
}

TEST_CASE("making a batch allocates nothing and copies only its rows") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const auto dataset =
      make_dataset({.kind = "synthetic", .name = "random", .samples = 50, .classes = 2, .shape = {1000}}, 0);
  const auto feed = gpu.make_keeping_feed(*dataset->stored(), {}, 8);
  const Buffer memory = feed->allocate(8 * sizeof(PickedRow));
  auto before = sim::calls();
  const uint64_t copied = sim::bytes_to_device();
  CHECK(copied >= 50 * 1000 * sizeof(float) + 50 * sizeof(int64_t));
  for (int batch = 0; batch < 10; ++batch) {
    feed->release();
    feed->gather(memory.as<PickedRow>());
  }
  CHECK(sim::bytes_to_device() - copied == 10 * 8 * sizeof(PickedRow));
  auto after = sim::calls();
  for (const char* function : {"cudaMalloc", "cudaHostAlloc", "cudaEventCreateWithFlags", "cudaStreamCreateWithFlags"})
    CHECK(after[function] == before[function]);
  CHECK(after["cudaLaunchKernel"] == before["cudaLaunchKernel"] + 10);
}
