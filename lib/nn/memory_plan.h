// Places blocks of memory with known lifetimes into one arena so that blocks alive at the same time never overlap.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

// Alive from time `first` to time `last`, both included. offset is the result, in bytes, a multiple of 64.
struct MemoryBlock {
  size_t bytes = 0;
  int first = 0, last = 0;
  size_t offset = 0;
};

// Greedy by size: the largest block first, each at the lowest offset free during its whole life. Returns the arena
// size.
size_t plan_memory(std::span<MemoryBlock> blocks);

}  // namespace lockstep
