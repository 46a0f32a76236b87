// What each rank has, on all of them: Communicator::all_gather for values and texts instead of bytes. Collective.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

// By rank.
std::vector<std::string> gather_texts(const std::string& mine, Communicator& communicator);

// One rank's after another's; each may have any number.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> gather_values(std::span<const T> mine,
                                                                      Communicator& communicator) {
  std::vector<T> all;
  for (const auto& bytes : communicator.all_gather(std::as_bytes(mine))) {
    const size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace lockstep
