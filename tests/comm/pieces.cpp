// The pure functions of the collectives: pieces of long arrays, slices of ranks, arithmetic in rank order.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "comm/mpi/chunks.h"
#include "comm/shm/shared_reduction.h"
#include "comm/shm/sum_kernels.h"

using namespace lockstep;

TEST_CASE("chunks cover three thousand million elements with counts that fit an int") {
  const size_t total = 3'000'000'000, limit = std::numeric_limits<int>::max();
  REQUIRE(chunk_count(total, limit) == 2);
  CHECK(chunk(total, limit, 0).first == 0);
  CHECK(chunk(total, limit, 0).count == limit);
  CHECK(chunk(total, limit, 1).first == limit);
  CHECK(chunk(total, limit, 1).count == total - limit);
}

TEST_CASE("chunks of any limit tile the array") {
  for (const size_t total : {0, 1, 999, 1000, 1001, 5000}) {
    for (const size_t limit : {1, 7, 1000, 4096}) {
      size_t next = 0;
      for (size_t i = 0; i < chunk_count(total, limit); ++i) {
        const Chunk part = chunk(total, limit, i);
        CHECK(part.first == next);
        CHECK(part.count >= 1);
        CHECK(part.count <= limit);
        next += part.count;
      }
      CHECK(next == total);
    }
  }
}

TEST_CASE("shares of ranks tile the array") {
  for (const size_t total : {0, 1, 2, 3, 10, 1000}) {
    for (const int size : {1, 2, 3, 7}) {
      size_t next = 0;
      for (int r = 0; r < size; ++r) {
        const Chunk part = share_of(total, r, size);
        if (part.count > 0) CHECK(part.first == next);
        next += part.count;
      }
      CHECK(next == total);
    }
  }
}

TEST_CASE("slices tile the array and never split a cache line") {
  for (const size_t first : {0, 5, 16, 31}) {
    for (const size_t count : {0, 1, 15, 16, 17, 1000, 4099}) {
      for (const int size : {1, 2, 3, 8}) {
        size_t next = first;
        for (int r = 0; r < size; ++r) {
          const Slice slice = slice_of(first, count, r, size);
          if (slice.count == 0) continue;
          CHECK(slice.first == next);
          if (slice.first != first) CHECK(slice.first % 16 == 0);
          next += slice.count;
        }
        CHECK(next == first + count);
      }
    }
  }
}

TEST_CASE("sums are taken in rank order") {
  // ((1 + 1e8) - 1e8) + 3 loses the 1; another order would keep it.
  std::vector<std::vector<float>> ranks = {{1}, {1e8f}, {-1e8f}, {3}};
  std::vector<float*> arrays;
  for (auto& values : ranks) arrays.push_back(values.data());
  float out = 0;
  sum_into(&out, arrays.data(), 4, 1);
  CHECK(out == 3.0f);
  sum_into_all(arrays.data(), 4, 1);
  for (const auto& values : ranks) CHECK(values[0] == 3.0f);
}

TEST_CASE("a sum may replace one of its arrays and has any length") {
  for (const size_t count : {1, 17, 1023, 1024, 1025, 5000}) {
    std::vector<float> a(count), b(count), c(count), expected(count);
    for (size_t i = 0; i < count; ++i) {
      a[i] = 0.1f * static_cast<float>(i), b[i] = 1.0f / static_cast<float>(i + 1), c[i] = -3.7f;
      expected[i] = (a[i] + b[i]) + c[i];
    }
    const float* arrays[] = {a.data(), b.data(), c.data()};
    sum_into(b.data(), arrays, 3, count);
    CHECK(b == expected);
  }
}

TEST_CASE("minimum and maximum keep a NaN of any rank") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    std::vector<double> mine = {1, nan, 5}, other = {nan, 2, 7};
    combine(mine.data(), other.data(), 3, op);
    CHECK(std::isnan(mine[0]));
    CHECK(std::isnan(mine[1]));
    CHECK(mine[2] == (op == ReduceOp::min ? 5 : 7));
  }
}
