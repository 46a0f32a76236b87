// Numbers compared as bits: -0 is not 0, and NaNs are equal if they are the same.
#pragma once

#include <cstring>
#include <vector>

namespace lockstep::test {

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace lockstep::test
