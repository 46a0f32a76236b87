// A small message from every rank to every rank before each collective: which one it is in. So a rank that is somewhere
// else is found out before any data moves. Waits, for these messages and for the data, end after the time limit.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/failure.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/roll_call.h"

namespace lockstep::mpi {

class Meeting {
 public:
  static constexpr size_t carried_bytes = 3584;  // with the header less than what MPI sends at once within a node

  // `activity`: what this rank is busy with; may be null. Outlives this object.
  Meeting(OwnedComm comm, double timeout_seconds, const Activity* activity = nullptr);

  MPI_Comm comm() const { return comm_.get(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t sequence() const { return call_.sequence; }

  // Returns when every rank has come to this collective. Throws PeerFailure when one is in another collective, does not
  // come in time, or gave up.
  // carried: values that travel with this rank's message, no more than carried_bytes; not part of the agreement, but
  // all ranks that agree carry alike.
  void meet(Collective kind, uint64_t count, uint64_t where = 0, std::span<const std::byte> carried = {});
  // What rank r carried to the current collective, aligned for any number.
  const std::byte* carried(int rank) const { return messages_[static_cast<size_t>(rank)].carried; }
  // Returns when all requests of the current collective are done; the same limit and ends as meet. After a failure
  // their buffers may still be in use by MPI where a message is half through; what is not is withdrawn, unless the
  // request is one of MPI's own collectives.
  void wait(std::span<MPI_Request> requests, bool collective = false);
  // all[r * bytes]: what rank r has at `mine`. Part of the current collective.
  void all_gather(const void* mine, int bytes, void* all);
  // Between collectives, while this rank waits for others by other means; see MpiCommunicator.
  void check_peers();
  std::string missing_ranks();
  // Ends the other ranks' waits: "rank 1 <words>".
  void give_up(std::string_view words) { roll_call_.give_up(words); }

 private:
  struct Message {
    Call call;
    std::byte carried[carried_bytes];
  };
  void wait_slowly(std::span<MPI_Request> requests, bool collective);
  [[noreturn]] void fail(std::span<MPI_Request> requests, const std::string& reason);

  OwnedComm comm_;
  RollCall roll_call_;
  int rank_, size_;
  double timeout_seconds_;
  const Activity* activity_;
  Call call_;
  std::unique_ptr<Message[]> messages_;  // every rank's
  std::vector<MPI_Request> requests_;
};

}  // namespace lockstep::mpi
