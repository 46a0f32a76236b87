// A small message from every rank to every rank before each collective: which one it is in. So waits are bounded, and a
// rank that is somewhere else is found out before any data moves.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/failure.h"
#include "comm/mpi/mpi_call.h"

namespace lockstep::mpi {

class Meeting {
 public:
  Meeting(OwnedComm comm, double timeout_seconds);

  MPI_Comm comm() const { return comm_.get(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t sequence() const { return sequence_; }

  // Returns when every rank has come to this collective. Throws PeerFailure when one is in another collective or does
  // not come in time.
  void meet(Collective kind, uint64_t count, uint64_t where = 0);

 private:
  struct Header {
    uint64_t sequence, what, where;
  };
  void wait(MPI_Request request);
  std::vector<int> find_missing() const;
  void abandon();

  OwnedComm comm_;
  int rank_, size_;
  double timeout_seconds_;
  uint64_t sequence_ = 0;
  Fingerprint current_;
  std::unique_ptr<Header[]> headers_;  // every rank's, then this rank's own
};

}  // namespace lockstep::mpi
