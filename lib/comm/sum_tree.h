// The one order in which anything is added up over ranks: a binary tree over the ranks 0 .. n-1 whose left branch is
// the largest power of two that leaves something for the right one. (r0 + r1) + (r2 + r3) for four, (r0 + r1) + r2 for
// three. An aligned group of 2^k neighbours is a subtree of its own, so its sum may be made wherever is convenient (by
// one rank that holds all of the group, within a node) and the bits of the whole do not change.
#pragma once

#include <bit>
#include <span>

namespace lockstep {

// Leaves of the left branch of a tree with `leaves` >= 2 leaves.
constexpr int left_leaves(int leaves) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(leaves - 1))); }

// leaf(first) for one leaf, else combine(left branch, right branch); last > first, last is past the end. `first` is 0
// or where a left branch ended.
template <class Leaf, class Combine>
constexpr auto tree_reduce(int first, int last, const Leaf& leaf, const Combine& combine) -> decltype(leaf(first)) {
  if (last - first == 1) return leaf(first);
  const int middle = first + left_leaves(last - first);
  const auto left = tree_reduce(first, middle, leaf, combine);
  return combine(left, tree_reduce(middle, last, leaf, combine));
}

// leaf(0) + ... + leaf(leaves - 1) in the order of the tree; leaves >= 1.
template <class Leaf>
constexpr auto tree_sum(int leaves, const Leaf& leaf) -> decltype(leaf(0)) {
  return tree_reduce(0, leaves, leaf, [](const auto& left, const auto& right) { return left + right; });
}

// The same of values at hand; 0 for none.
constexpr double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  return tree_sum(static_cast<int>(values.size()), [&](int i) { return values[static_cast<size_t>(i)]; });
}

}  // namespace lockstep
