// The pure functions of the collectives: pieces of long arrays, slices of ranks, arithmetic in the order of the tree.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "comm/mpi/chunks.h"
#include "comm/shm/shared_reduction.h"
#include "comm/shm/sum_kernels.h"
#include "comm/sum_tree.h"
#include "team.h"

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
          const Shard slice = slice_of(first, count, r, size);
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

TEST_CASE("the tree pairs neighbours and puts the largest power of two on the left") {
  const auto shape = [](int leaves) {
    return tree_reduce(
        0, leaves, [](int r) { return std::to_string(r); },
        [](const std::string& left, const std::string& right) { return "(" + left + right + ")"; });
  };
  CHECK(shape(1) == "0");
  CHECK(shape(2) == "(01)");
  CHECK(shape(3) == "((01)2)");
  CHECK(shape(4) == "((01)(23))");
  CHECK(shape(5) == "(((01)(23))4)");
  CHECK(shape(6) == "(((01)(23))(45))");
  CHECK(shape(7) == "(((01)(23))((45)6))");
  CHECK(shape(8) == "(((01)(23))((45)(67)))");
  CHECK(shape(9) == "((((01)(23))((45)(67)))8)");
}

TEST_CASE("sums have the bits of the tree for every number of arrays") {
  for (int ranks = 1; ranks <= 70; ++ranks) {
    const size_t count = ranks < 20 ? 2100 : 50;  // blocks of a thousand, the last one shorter
    std::vector<std::vector<float>> values(ranks, std::vector<float>(count));
    std::vector<float*> arrays;
    for (int r = 0; r < ranks; ++r) {
      test::fill(values[r].data(), count, r, 1);
      arrays.push_back(values[r].data());
    }
    std::vector<float> out(count);
    sum_into(out.data(), arrays.data(), ranks, count);
    CHECK(test::wrong_values(out.data(), count, ranks, 1) == 0);
    sum_into_all(arrays.data(), ranks, count);
    for (const auto& copy : values) CHECK(copy == out);
  }
}

TEST_CASE("groups of a power of two neighbours may be summed first") {
  const auto leaf = [](int r) { return test::value_of(r, 4, 2); };
  for (const int leaves : {4, 8, 12, 16, 24}) {
    for (const int group : {2, 4}) {
      const auto of_group = [&](int g) { return tree_sum(group, [&](int r) { return leaf(g * group + r); }); };
      CHECK(tree_sum(leaves / group, of_group) == tree_sum(leaves, leaf));
    }
  }
}

TEST_CASE("doubles have the bits of the tree for every number of arrays") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const auto value = [](int r, size_t i) { return (r % 2 == 0 ? 1e17 : -1e17) / (r + 1) + static_cast<double>(i); };
    std::vector<std::vector<double>> values(ranks, std::vector<double>(5));
    std::vector<const double*> arrays;
    for (int r = 0; r < ranks; ++r) {
      for (size_t i = 0; i < 5; ++i) values[r][i] = value(r, i);
      arrays.push_back(values[r].data());
    }
    combine_into(values[0].data(), arrays.data(), ranks, 5, ReduceOp::sum);
    for (size_t i = 0; i < 5; ++i)
      CHECK(values[0][i] == test::plain_tree(0, ranks, [&](int r) { return value(r, i); }));
  }
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
    const double* arrays[] = {mine.data(), other.data()};
    combine_into(mine.data(), arrays, 2, 3, op);
    CHECK(std::isnan(mine[0]));
    CHECK(std::isnan(mine[1]));
    CHECK(mine[2] == (op == ReduceOp::min ? 5 : 7));
  }
}
