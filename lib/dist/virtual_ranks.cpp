#include "dist/virtual_ranks.h"

#include <bit>

#include "core/error.h"

namespace lockstep {

VirtualRanks deal_virtual_ranks(std::optional<int64_t> wanted, int rank, int size) {
  if (!wanted) return {.count = size, .first = rank, .held = 1};
  if (*wanted < 1 || !std::has_single_bit(static_cast<uint64_t>(*wanted)))
    throw_error("train.virtual_ranks: expected a power of two (the sum is a binary tree), found {}", *wanted);
  if (*wanted % size != 0)
    throw_error("train.virtual_ranks {} can't be dealt to {} ranks: start 1, 2, 4, ... or {} of them", *wanted, size,
                *wanted);
  const int64_t held = *wanted / size;
  return {.count = *wanted, .first = rank * held, .held = held};
}

}  // namespace lockstep
