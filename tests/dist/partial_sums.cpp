// The lower levels of the gradient tree against a recursive sum, and how virtual ranks are dealt.
#include "dist/partial_sums.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/optimizer_ops.h"
#include "comm/sum_tree.h"
#include "core/error.h"
#include "dist/virtual_ranks.h"

using namespace lockstep;

namespace {

using Piece = std::vector<float>;

// Values whose sum depends on its order in every element.
std::vector<Piece> make_pieces(size_t count, size_t floats) {
  std::vector<Piece> pieces(count, Piece(floats));
  uint32_t state = 1;
  for (Piece& piece : pieces) {
    for (float& value : piece) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state)) * 1e-9f / static_cast<float>(1 + (state & 63));
    }
  }
  return pieces;
}

Piece oracle(const std::vector<Piece>& pieces, size_t first, size_t count) {
  if (count == 1) return pieces[first];
  Piece sum = oracle(pieces, first, count / 2);
  const Piece right = oracle(pieces, first + count / 2, count / 2);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

}  // namespace

TEST_CASE("pieces are added in the order of a balanced binary tree") {
  constexpr size_t kFloats = 37;
  const CpuOptimizerOps ops;
  for (const size_t count : {1, 2, 4, 8, 32}) {
    CAPTURE(count);
    auto pieces = make_pieces(count, kFloats);
    const Piece expected = oracle(pieces, 0, count);
    PartialSums sums(kFloats, static_cast<int64_t>(count), ops);
    CHECK((size_t{1} << sums.arenas()) == count);
    for (int step = 0; step < 2; ++step) {  // the second step starts afresh
      auto scratch = pieces;
      for (size_t i = 0; i + 1 < count; ++i) sums.add(scratch[i]);
      const std::span<float> last = scratch.back();
      sums.complete(last.subspan(0, 11), 0);  // as two buckets
      sums.complete(last.subspan(11), 11);
      CHECK(std::memcmp(last.data(), expected.data(), kFloats * sizeof(float)) == 0);
      sums.restart();
    }
    Piece in_turn = pieces[0];
    for (size_t i = 1; i < count; ++i)
      for (size_t k = 0; k < kFloats; ++k) in_turn[k] += pieces[i][k];
    CHECK((in_turn == expected) == (count <= 2));  // the values tell orders apart
  }
}

TEST_CASE("the tree of doubles") {
  std::vector<double> values{1e16, 1, -1e16, 1, 3, 1e-20, 7, 0.1};
  const double expected =
      ((values[0] + values[1]) + (values[2] + values[3])) + ((values[4] + values[5]) + (values[6] + values[7]));
  CHECK(tree_sum(values) == expected);
  CHECK(tree_sum({}) == 0);
  std::vector<double> one{4.5};
  CHECK(tree_sum(one) == 4.5);
}

TEST_CASE("virtual ranks are dealt in consecutive runs") {
  for (const int size : {1, 2, 4, 8}) {
    for (int rank = 0; rank < size; ++rank) {
      const VirtualRanks ranks = deal_virtual_ranks(8, rank, size);
      CHECK(ranks.count == 8);
      CHECK(ranks.held == 8 / size);
      CHECK(ranks.first == rank * ranks.held);
    }
  }
  const VirtualRanks plain = deal_virtual_ranks({}, 2, 3);
  CHECK(plain.count == 3);
  CHECK(plain.first == 2);
  CHECK(plain.one_each());
  CHECK_THROWS_WITH(deal_virtual_ranks(8, 0, 3),
                    "train.virtual_ranks 8 can't be dealt to 3 ranks: start 1, 2, 4, ... or 8 of them");
  CHECK_THROWS_AS(deal_virtual_ranks(4, 0, 8), Error);
  CHECK_THROWS_WITH(deal_virtual_ranks(6, 0, 2),
                    "train.virtual_ranks: expected a power of two (the sum is a binary tree), found 6");
}
