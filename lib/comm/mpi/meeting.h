// Where ranks meet at the start of each collective: a message from every rank to every rank that says which collective
// it is in and brings what that one needs first. So a rank that is somewhere else is found out before any value counts.
// Waits, for these messages and for the data, end after the time limit.
//
// What a rank says is in the message's tag, as a hash: a message of values is then no longer than MPI's own, which
// matters just below the lengths from which on MPI sends in another way, and none of them has to be copied. Where
// tags differ, ranks tell each other in full.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/failure.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/roll_call.h"
#include "core/buffer.h"

namespace lockstep::mpi {

// Part of an array, in bytes.
struct Piece {
  size_t first = 0;
  size_t bytes = 0;
};

// Pieces of an array on their way to all other ranks, pieces[r] of `mine` to rank r. A rank's piece has the same size
// for all; its own stays where it is.
struct Scatter {
  const std::byte* mine = nullptr;
  std::span<const Piece> pieces;
};

class Meeting {
 public:
  // slot_bytes: of the longest piece, less than 2 GiB, on all ranks alike.
  // `activity`: what this rank is busy with; may be null. Outlives this object.
  Meeting(OwnedComm comm, double timeout_seconds, size_t slot_bytes, const Activity* activity = nullptr);

  MPI_Comm comm() const { return comm_.get(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t sequence() const { return call_.sequence; }
  // Where rank r's piece arrives, one slot after the other: any piece of any collective fits, because a message that
  // is too long for its place may be written beyond it (Open MPI 4.1 within a node) before anybody has looked at it.
  std::byte* slot(int rank) const {
    return static_cast<std::byte*>(slots_.data()) + static_cast<size_t>(rank) * slot_bytes_;
  }
  size_t slot_bytes() const { return slot_bytes_; }

  // Returns when every rank has come to this collective and its pieces are in the slots. Throws PeerFailure when one is
  // in another collective, does not come in time, or gave up.
  void meet(Collective kind, uint64_t count, uint64_t where = 0, const Scatter& first = {});
  // Returns when all requests of the current collective are done; the same limit and ends as meet. After a failure
  // their buffers may still be in use by MPI where a message is half through; what is not is withdrawn, unless the
  // request is one of MPI's own collectives.
  void wait(std::span<MPI_Request> requests, bool collective = false) {
    wait(requests, collective, MPI_STATUSES_IGNORE);
  }
  // all[r * bytes]: what rank r has at `mine`. Part of the current collective.
  void all_gather(const void* mine, int bytes, void* all);
  // Between collectives, while this rank waits for others by other means; see MpiCommunicator.
  void check_peers();
  std::string missing_ranks();
  // Ends the other ranks' waits: "rank 1 <words>".
  void give_up(std::string_view words) { roll_call_.give_up(words); }

 private:
  int tag_of(const Call& call) const;
  void wait(std::span<MPI_Request> requests, bool collective, MPI_Status* statuses);
  [[noreturn]] void tell_apart(int tag);
  void wait_slowly(std::span<MPI_Request> requests, bool collective, MPI_Status* statuses);
  [[noreturn]] void fail(std::span<MPI_Request> requests, const std::string& reason);

  OwnedComm comm_, meetings_;  // the latter for nothing but the first messages, whose tags are any
  RollCall roll_call_;
  int rank_, size_;
  double timeout_seconds_;
  const Activity* activity_;
  Call call_;
  size_t slot_bytes_;
  Buffer slots_;
  int most_tags_;
  bool failed_ = false;
  std::vector<Call> calls_;  // every rank's, where they differ
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace lockstep::mpi
