#include "dist/partial_sums.h"

#include <bit>

namespace lockstep {

PartialSums::PartialSums(size_t floats, int64_t pieces, const OptimizerOps& ops, const Memory& memory)
    : ops_(ops), memory_(memory) {
  const int levels = std::countr_zero(static_cast<uint64_t>(pieces));
  for (int level = 0; level < levels; ++level) waiting_.push_back(memory.allocate(floats * sizeof(float)));
}

void PartialSums::add(std::span<float> piece) {
  const auto level = static_cast<size_t>(std::countr_one(added_));
  for (size_t below = 0; below < level; ++below)
    ops_.add(piece.size(), waiting_[below].as<float>().data(), piece.data());
  memory_.copy(waiting_[level].as<float>(), piece);
  ++added_;
}

void PartialSums::complete(std::span<float> part, size_t offset) const {
  for (const Buffer& sum : waiting_) ops_.add(part.size(), sum.as<float>().data() + offset, part.data());
}

}  // namespace lockstep
