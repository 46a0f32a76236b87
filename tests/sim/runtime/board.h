// Where simulated collectives of several processes meet: a piece of shared memory named by NCCL's unique id. Nobody
// waits in here; whoever is asked too early says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::sim {

// What a rank says it is doing; NCCL leaves ranks that differ to their fate, the simulation finds them out.
struct Claim {
  uint64_t sequence = 0, count = 0;
  int type = 0, operation = 0;
  bool operator==(const Claim&) const = default;
};

class Board {
 public:
  static constexpr size_t most_bytes = 16 << 20;  // of one collective
  static constexpr int most_ranks = 16;

  static void create(const std::string& name);
  static void discard(const std::string& name);         // that nobody will hold
  Board(const std::string& name, int ranks, int rank);  // throws std::runtime_error when it is not there
  ~Board();

  void join();
  bool all_joined() const;
  void leave();
  bool all_left() const;  // of those that joined
  // This rank's part of collective claim.sequence; false: the one before the last is still being read.
  bool post(const Claim& claim, const void* data, size_t bytes);
  bool all_posted(uint64_t sequence) const;
  bool alike(const Claim& claim) const;  // all posted the same
  const std::byte* data(uint64_t sequence, int rank) const;
  void done_reading(uint64_t sequence);

 private:
  struct Shared;
  const std::byte* slot(uint64_t sequence, int rank) const;
  std::string name_;
  int ranks_, rank_;
  Shared* shared_ = nullptr;
};

}  // namespace lockstep::sim
