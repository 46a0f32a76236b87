// Two sums in double that one pass makes, for the normalisations.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

struct PairSum {
  double first, second;
};

struct AddPairs {
  static constexpr PairSum identity() { return {0, 0}; }
  static constexpr PairSum combine(const PairSum& a, const PairSum& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// A parameter's gradients from their sums, overwritten or added to; null: not wanted.
struct AddToParameters {
  float *dweight, *dbias;
  bool accumulate;
  constexpr void operator()(size_t i, const PairSum& sums) const {
    if (dweight != nullptr) dweight[i] = (accumulate ? dweight[i] : 0.0F) + static_cast<float>(sums.first);
    if (dbias != nullptr) dbias[i] = (accumulate ? dbias[i] : 0.0F) + static_cast<float>(sums.second);
  }
};

}  // namespace lockstep::cuda
