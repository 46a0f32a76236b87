// Arrays of which every rank has a copy, worked on by shares: each rank adds up its shard of all ranks' copies of one
// array, makes something of the sum, and stores that into all copies of another. An all-reduce followed by an update on
// every rank moves more and computes everything as often as there are ranks.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

// Floats [first, first + count) of an array.
struct Shard {
  size_t first = 0, count = 0;
};

// Needs ranks that reach each other's memory: Communicator::shards().
class Shards {
 public:
  // Floats that are best summed, used and stored before the next ones: 8 KiB of each array (of 4, 8 and 16 the fastest
  // in bench allreduce).
  static constexpr size_t block = 2048;

  virtual ~Shards() = default;

  // Whether other ranks can reach these values: they lie in memory of Communicator::allocate(). All ranks are answered
  // alike.
  virtual bool reach(std::span<const float> values) const = 0;
  // `rank`'s part of an array that begins at a cache line: whole lines, so that no two ranks write one.
  virtual Shard of(size_t count, int rank) const = 0;
  // Collective: returns when every rank has come, and what it wrote is visible. Until end() all copies of `terms` are
  // for sum(), of the arrays that are stored to a rank touches its own shard only, and no other collective may come
  // (allocate() and the end of a Buffer of it among them).
  virtual void begin(std::span<const float> terms) = 0;
  // out[i] = sum over ranks of their terms[first + i], in the order of Communicator::all_reduce_sum, the same bits.
  virtual void sum(size_t first, std::span<float> out) = 0;
  // These values, part of an array that others reach, into the other ranks' copies.
  virtual void store(std::span<const float> values) = 0;
  // Collective: returns when every rank has come, and what it stored is visible.
  virtual void end() = 0;
};

}  // namespace lockstep
