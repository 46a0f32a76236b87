// The order of addition over ranks, written down once more without help from lib/: (r0 + r1) + r2,
// (r0 + r1) + (r2 + r3), ...
#pragma once

namespace lockstep::test {

template <class Leaf>
auto plain_tree(int first, int last, const Leaf& leaf) -> decltype(leaf(0)) {
  if (last == first + 1) return leaf(first);
  int half = 1;
  while (2 * half < last - first) half *= 2;
  const auto left = plain_tree(first, first + half, leaf), right = plain_tree(first + half, last, leaf);
  return left + right;
}

}  // namespace lockstep::test
