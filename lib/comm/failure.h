// How a collective names its callers' disagreement, and the error a rank gets because of another rank.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace lockstep {

// This rank is well: another rank failed, disagreed or never came. That rank has the better message; see end_all().
class PeerFailure : public Error {
 public:
  using Error::Error;
};

enum class Collective : uint8_t { none, all_reduce_sum, all_reduce, broadcast, all_gather, barrier, allocate };

const char* name(Collective kind);

// What a rank is doing in collective number n; must be the same on all ranks.
struct Fingerprint {
  uint64_t what = 0;   // kind and count, see make()
  uint64_t where = 0;  // place in a shared window, root of a broadcast, reduction operator; 0 if none

  static Fingerprint make(Collective kind, uint64_t count, uint64_t where = 0);
  Collective kind() const { return static_cast<Collective>(what >> 56); }
  uint64_t count() const { return what & ((uint64_t{1} << 56) - 1); }
  std::string describe() const;  // "all_reduce_sum of 752"
  bool operator==(const Fingerprint&) const = default;
};

// "collective #42 differs between ranks: rank 0 calls all_reduce_sum of 752, rank 1 calls barrier"
std::string describe_mismatch(uint64_t sequence, int rank, const Fingerprint& mine, int peer, const Fingerprint& other);
// "rank 3", "ranks 1, 2 and 5"
std::string name_ranks(const int* ranks, int count);

}  // namespace lockstep
