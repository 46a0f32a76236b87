#include "nn/memory_plan.h"

#include <doctest/doctest.h>

#include <random>

using lockstep::MemoryBlock;
using lockstep::plan_memory;

namespace {

bool overlap(const MemoryBlock& a, const MemoryBlock& b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space && a.bytes > 0 && b.bytes > 0;
}

}  // namespace

TEST_CASE("blocks that never live together share memory") {
  std::vector<MemoryBlock> blocks{{1000, 0, 1}, {1000, 2, 3}, {500, 4, 5}};
  CHECK(plan_memory(blocks) == 1024);
  for (const MemoryBlock& block : blocks) CHECK(block.offset == 0);
}

TEST_CASE("a block alive at the end of another does not overlap it") {
  std::vector<MemoryBlock> blocks{{64, 0, 2}, {64, 2, 3}};
  CHECK(plan_memory(blocks) == 128);
  CHECK_FALSE(overlap(blocks[0], blocks[1]));
}

TEST_CASE("random lifetimes never overlap and need no more than the sum and no less than the peak") {
  std::mt19937 engine(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<MemoryBlock> blocks;
    size_t sum = 0;
    for (unsigned i = 0; i < 1 + engine() % 40; ++i) {
      const int first = static_cast<int>(engine() % 30);
      blocks.push_back({64 * (1 + engine() % 50), first, first + static_cast<int>(engine() % 10)});
      sum += blocks.back().bytes;
    }
    const size_t arena = plan_memory(blocks);
    size_t peak = 0;
    for (int time = 0; time < 40; ++time) {
      size_t alive = 0;
      for (const MemoryBlock& b : blocks) alive += b.first <= time && time <= b.last ? b.bytes : 0;
      peak = std::max(peak, alive);
    }
    CHECK(arena <= sum);
    CHECK(arena >= peak);
    for (size_t a = 0; a < blocks.size(); ++a) {
      CHECK(blocks[a].offset % 64 == 0);
      for (size_t b = 0; b < a; ++b) CHECK_FALSE(overlap(blocks[a], blocks[b]));
    }
  }
}
