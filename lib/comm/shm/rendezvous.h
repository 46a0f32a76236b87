// Meeting point of the ranks of one node: a phase counter per rank in shared memory. A rank posts a phase and waits
// until the others have posted it too. Waits are bounded, watch the abort flag, and compare what each rank is doing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "comm/failure.h"

namespace lockstep {

// Words in shared memory, zero at the start and only touched through std::atomic_ref. A rank is never more than one
// phase ahead of another, so what it is doing is kept for two phases. One cache line per rank (plus its neighbour,
// which the processor fetches along).
struct alignas(128) PhaseLine {
  uint64_t phase;
  uint64_t what[2];
  uint64_t where[2];
  uint64_t when[2];
};

// The first rank to give up writes why; the others stop waiting and repeat it.
struct alignas(128) AbortNotice {
  uint64_t state;  // 0 none, 1 being written, 2 readable
  uint64_t rank;
  char message[368];
};

struct WaitPolicy {
  double timeout_seconds = 120;
  bool yield_at_once = false;          // more ranks than cores: the awaited rank needs this core
  const Activity* activity = nullptr;  // of this rank, for messages and the limit of the preparation; may be null
  int first_rank = 0;                  // what messages call rank 0; the others follow
  void (*idle)() = nullptr;            // called now and then while waiting: for what else must go on
};

class Rendezvous {
 public:
  // lines[r] and notice lie in memory that all ranks share and outlive this object.
  Rendezvous(std::vector<PhaseLine*> lines, AbortNotice* notice, int rank, WaitPolicy policy);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(lines_.size()); }
  uint64_t sequence() const { return sequence_; }  // number of the current collective, from 1
  const Fingerprint& current() const { return current_; }
  const Activity* activity() const { return policy_.activity; }

  // Starts the next collective: its phases will carry this fingerprint.
  void begin(Collective kind, uint64_t count, uint64_t where = 0);
  // Parity of the phase that the next post() publishes: which half of a double buffer belongs to it.
  int next_parity() const { return static_cast<int>((phase_ + 1) & 1); }
  // Publishes all that this rank wrote before.
  void post();
  // Returns when `peer` has posted the current phase; what it wrote before is then visible. Throws PeerFailure after
  // the time limit, when a rank aborted, or when the peer is in another collective.
  void wait_for(int peer);
  void wait_all();
  void sync() { post(), wait_all(); }
  // Waits, with the same limit and the same ends, until `ready(peer)`: for progress that is counted elsewhere.
  // `call` says which collective that is.
  void wait_until(int peer, const std::function<bool(int)>& ready, const std::function<Call(int)>& call);
  // Throws PeerFailure when `theirs` is not what this rank does in collective number `sequence`.
  void check_agreement(uint64_t sequence, const Fingerprint& mine, int peer, const Fingerprint& theirs);

  // Throws PeerFailure when a rank aborted, for waits elsewhere; `call` is what this rank waits in.
  void throw_if_aborted(const Call& call) const;
  // The first call aborts, see there; throws PeerFailure.
  [[noreturn]] void fail(const std::string& reason);
  // Ends the waits of all other ranks with this reason. The first call of any rank counts.
  void abort(std::string_view reason);

 private:
  bool is_aborted() const;
  [[noreturn]] void throw_aborted(const Call& call) const;
  bool has_posted(int peer) const;
  void wait_slowly(int peer, const std::function<bool(int)>& ready, const std::function<Call(int)>& call);
  void check_agreement(int peer);

  std::vector<PhaseLine*> lines_;
  AbortNotice* notice_;
  int rank_;
  WaitPolicy policy_;
  int spins_;
  uint64_t phase_ = 0;
  uint64_t sequence_ = 0;
  Fingerprint current_;
};

}  // namespace lockstep
