// The loader: same batches with and without its thread, exceptions that arrive, and a stop that never hangs.
#include "data/loader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

#include "data/factory.h"
#include "data/files.h"
#include "data/rows.h"
#include "support/allocations.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::unique_ptr<Dataset> rows_as_samples(int64_t samples) {
  DatasetSettings settings;
  settings.kind = "synthetic";
  settings.name = "identity";
  settings.samples = samples;
  return make_dataset(settings, 0);
}

// Rows 0 1 2 ... in batches of `batch`, the last one short, then empty ones; one span, overwritten every time.
struct Counter {
  int64_t size, batch, at = 0, calls = 0;
  std::vector<int64_t> rows{};
  std::span<const int64_t> operator()() {
    ++calls;
    rows.clear();
    for (int64_t i = 0; i < batch && at < size; ++i) rows.push_back(at++);
    return rows;
  }
};

std::vector<float> values(const Batch& batch) { return {batch.x, batch.x + batch.count}; }

}  // namespace

TEST_CASE("loader gives the same batches at every depth") {
  const auto dataset = rows_as_samples(10);
  for (int64_t depth : {0, 1, 2, 5}) {
    Counter counter{10, 4};
    BatchLoader loader(*dataset, 4, depth, std::ref(counter));
    for (int pass = 0; pass < 3; ++pass) {
      loader.start(4, [&] { counter.at = 0; });
      CHECK_EQ(values(loader.next()), std::vector<float>{0, 1, 2, 3});
      CHECK_EQ(values(loader.next()), std::vector<float>{4, 5, 6, 7});
      const Batch& last = loader.next();
      CHECK_EQ(last.count, 2);
      CHECK_EQ(last.rows.size(), 2);
      CHECK_EQ(last.rows[1], 9);
      CHECK_EQ(last.targets[1], 9);
      CHECK_EQ(last.labels, nullptr);
      CHECK_EQ(loader.remaining(), 1);
      CHECK_EQ(loader.next().count, 0);  // a rank without samples takes part with none
      CHECK_EQ(error_of([&] { loader.next(); }), "the loader has given all 4 batches of this pass");
    }
    CHECK_EQ(counter.calls, 12);
  }
}

TEST_CASE("loader batch stays as it is until the next one is asked for") {
  const auto dataset = rows_as_samples(1000);
  Counter counter{1000, 1};
  BatchLoader loader(*dataset, 1, 3, std::ref(counter));
  loader.start(1000);
  for (int64_t i = 0; i < 1000; ++i) {
    const Batch& batch = loader.next();
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the thread runs as far as it may
    CHECK_EQ(batch.x[0], static_cast<float>(i));
    CHECK_EQ(batch.rows[0], i);
  }
}

TEST_CASE("loader never runs ahead of the pass or of its depth") {
  const auto dataset = rows_as_samples(100);
  std::atomic<int> calls = 0;
  const std::vector<int64_t> row{7};
  BatchLoader loader(*dataset, 1, 2, [&]() -> std::span<const int64_t> {
    ++calls;
    return row;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_EQ(calls, 0);  // nothing before start
  loader.start(10);
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_LE(calls, 3);  // one in use and two ahead
  while (loader.remaining() > 0) loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_EQ(calls, 10);
}

TEST_CASE("loader start in the middle of a pass drops what was ahead") {
  const auto dataset = rows_as_samples(100);
  for (int64_t depth : {0, 3}) {
    Counter counter{100, 2};
    BatchLoader loader(*dataset, 2, depth, std::ref(counter));
    for (int64_t pass = 0; pass < 50; ++pass) {
      loader.start(5, [&] { counter.at = pass; });
      CHECK_EQ(loader.next().x[0], static_cast<float>(pass));
      CHECK_EQ(loader.next().x[0], static_cast<float>(pass + 2));
    }
  }
}

TEST_CASE("loader hands an exception on after the batches before it") {
  const auto dataset = rows_as_samples(10);
  for (int64_t depth : {0, 1, 4}) {
    Counter counter{12, 4};  // the last batch asks for rows 8 to 11 of 10
    BatchLoader loader(*dataset, 4, depth, std::ref(counter));
    loader.start(3);
    CHECK_EQ(loader.next().x[3], 3);
    CHECK_EQ(loader.next().x[3], 7);
    for (int again = 0; again < 3; ++again) {
      CHECK_EQ(error_of([&] { loader.next(); }), "row 10 of a data set of 10 samples");
    }
    loader.start(1, [&] { counter.at = 0; });
    CHECK_EQ(loader.next().x[3], 3);
  }
}

TEST_CASE("loader refuses batches larger than its memory") {
  const auto dataset = rows_as_samples(10);
  Counter counter{10, 5};
  BatchLoader loader(*dataset, 4, 1, std::ref(counter));
  loader.start(1);
  CHECK_EQ(error_of([&] { loader.next(); }), "a batch of 5 rows: expected at most 4");
}

TEST_CASE("loader stops at once whatever it is doing") {
  const auto dataset = rows_as_samples(100);
  for (int round = 0; round < 200; ++round) {
    Counter counter{100, 1};
    BatchLoader loader(*dataset, 1, 1 + round % 4, std::ref(counter));
    if (round % 5 > 0) loader.start(100);
    for (int taken = 0; taken < round % 5 - 1; ++taken) loader.next();
  }
}

TEST_CASE("loader survives a prepare that throws") {
  const auto dataset = rows_as_samples(10);
  Counter counter{10, 2};
  BatchLoader loader(*dataset, 2, 2, std::ref(counter));
  CHECK_EQ(error_of([&] { loader.start(5, [] { throw_error("no epoch"); }); }), "no epoch");
  CHECK_EQ(error_of([&] { loader.next(); }), "the loader has given all 0 batches of this pass");
  loader.start(5);
  CHECK_EQ(loader.next().x[1], 1);
}

TEST_CASE("loader allocates nothing after its construction") {
  const auto dataset = rows_as_samples(1000);
  for (int64_t depth : {0, 2}) {
    Counter counter{1000, 8};
    counter.rows.reserve(8);
    BatchLoader loader(*dataset, 8, depth, std::ref(counter));
    loader.start(125);
    loader.next();
    const int64_t before = allocations();
    while (loader.remaining() > 0) loader.next();
    CHECK_EQ(allocations() - before, 0);
  }
  Counter counter{1000, 8};
  counter.rows.reserve(8);
  BatchLoader rows(*dataset, 8, 0, std::ref(counter), {}, Buffer::host, Deliver::rows);
  rows.start(125);
  const int64_t before = allocations();
  while (rows.remaining() > 0) rows.next();
  CHECK_EQ(allocations() - before, 0);
}

TEST_CASE("loader told to deliver rows names them and what is drawn of them and reads nothing") {
  const auto dataset = rows_as_samples(10);
  for (int64_t depth : {0, 1, 3}) {
    Counter counter{10, 4};
    const auto mirror_odd = [](const Batch& batch) {
      for (size_t i = 0; i < batch.rows.size(); ++i) batch.picked[i].draw.mirrored = batch.rows[i] % 2 == 1;
    };
    BatchLoader loader(*dataset, 4, depth, std::ref(counter), mirror_odd, Buffer::host, Deliver::rows);
    for (int pass = 0; pass < 2; ++pass) {
      loader.start(4, [&] { counter.at = 0; });
      for (const int64_t count : {4, 4, 2, 0}) {
        const Batch& batch = loader.next();
        REQUIRE(batch.count == count);
        CHECK(batch.x == nullptr);
        CHECK(batch.targets == nullptr);
        for (size_t i = 0; i < batch.rows.size(); ++i) {
          CHECK(batch.picked[i].row == batch.rows[i]);
          CHECK(batch.picked[i].draw.mirrored == (batch.rows[i] % 2 == 1));
          CHECK(batch.picked[i].draw.down == 0);
        }
      }
    }
  }
  Counter beyond{12, 12};
  BatchLoader loader(*dataset, 12, 0, std::ref(beyond), {}, Buffer::host, Deliver::rows);
  loader.start(1);
  CHECK_EQ(error_of([&] { loader.next(); }), "row 10 of a data set of 10 samples");
}

TEST_CASE("loader picks its depth by the size of a batch") {
  CHECK_EQ(prefetch_depth(-1, 256 * 1024), 0);
  CHECK_EQ(prefetch_depth(-1, 256 * 1024 + 1), 2);
  CHECK_EQ(prefetch_depth(0, 1 << 30), 0);
  CHECK_EQ(prefetch_depth(7, 4), 7);
  CHECK(has(error_of([] { prefetch_depth(100000, 4); }), "expected at most 1024 batches"));
  const auto dataset = rows_as_samples(10);
  Counter counter{10, 4};
  CHECK_EQ(BatchLoader(*dataset, 4, -1, std::ref(counter)).depth(), 0);
  CHECK_EQ(BatchLoader(*dataset, 70000, -1, std::ref(counter)).depth(), 2);
  const auto rows_of = [&](int64_t prefetch) {
    return BatchLoader(*dataset, 4, prefetch, std::ref(counter), {}, Buffer::host, Deliver::rows).depth();
  };
  CHECK_EQ(rows_of(-1), 0);
  CHECK_EQ(rows_of(3), 3);
}
