// How a collective names its callers' disagreement, and the error a rank gets because of another rank.
#pragma once

#include <cstdint>
#include <string>

#include "comm/activity.h"
#include "core/error.h"

namespace lockstep {

// This rank is well: another rank failed, disagreed or never came. That rank has the better message; see end_all().
class PeerFailure : public Error {
 public:
  using Error::Error;
};

enum class Collective : uint8_t {
  none,
  all_reduce_sum,
  all_reduce,
  broadcast,
  all_gather,
  barrier,
  allocate,
  all_reduce_sum_bf16,
  all_reduce_sum_fp16,
  sharded_sum
};

const char* name(Collective kind);

// What a rank is doing in collective number n; must be the same on all ranks.
struct Fingerprint {
  uint64_t what = 0;   // kind and count, see make()
  uint64_t where = 0;  // place in a shared window, root of a broadcast, reduction operator; 0 if none
  uint64_t when = 0;   // Activity::word(): step and bucket

  static Fingerprint make(Collective kind, uint64_t count, uint64_t where = 0, uint64_t when = 0);
  Collective kind() const { return static_cast<Collective>(what >> 56); }
  uint64_t count() const { return what & ((uint64_t{1} << 56) - 1); }
  // "all_reduce_sum of 752 (step 3, bucket 1 from 4.weight)"; without an activity there are no words for step and
  // bucket.
  std::string describe(const Activity* activity = nullptr) const;
  bool operator==(const Fingerprint&) const = default;
};

// Collective number `sequence`, as messages name it.
struct Call {
  uint64_t sequence = 0;
  Fingerprint fingerprint;

  // "all_reduce_sum #42 (step 3, bucket 1 from 4.weight)"
  std::string describe(const Activity* activity) const;
};

// "collective #42 differs between ranks: rank 0 calls all_reduce_sum of 752, rank 1 calls barrier"
std::string describe_mismatch(uint64_t sequence, int rank, const Fingerprint& mine, int peer, const Fingerprint& other,
                              const Activity* activity = nullptr);
// "rank 3", "ranks 1, 2 and 5"
std::string name_ranks(const int* ranks, int count);

}  // namespace lockstep
