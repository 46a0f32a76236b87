#include "nn/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/buffer.h"

namespace lockstep {

size_t plan_memory(std::span<MemoryBlock> blocks) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  size_t arena = 0;
  std::vector<const MemoryBlock*> placed;  // sorted by offset
  for (size_t index : by_size) {
    MemoryBlock& block = blocks[index];
    const size_t bytes = align_up(block.bytes);
    size_t offset = 0;
    for (const MemoryBlock* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (offset + bytes <= other->offset) break;
      offset = std::max(offset, other->offset + align_up(other->bytes));
    }
    block.offset = offset;
    arena = std::max(arena, offset + bytes);
    const auto at = std::ranges::upper_bound(placed, offset, {}, &MemoryBlock::offset);
    placed.insert(at, &block);
  }
  return arena;
}

}  // namespace lockstep
