// The order in which kernels add up, the same on every GPU: thread t of block b takes the elements t + threads * b, and
// every threads * blocks after that, in ascending order; then the upper half of a block's threads is added to the lower
// half until one is left; then the blocks' results are added by one block in the same way.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

constexpr int reduction_threads = 256;
constexpr int reduction_blocks = 256;

// Combines the blocks' results as Reduction combines elements.
template <class Reduction, class Value>
struct PartsOf {
  const Value* parts;
  static constexpr Value identity() { return Reduction::identity(); }
  static constexpr Value combine(Value a, Value b) { return Reduction::combine(a, b); }
  constexpr Value operator()(size_t i) const { return parts[i]; }
};

}  // namespace lockstep::cuda
