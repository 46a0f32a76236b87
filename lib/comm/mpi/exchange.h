// The data of a collective, in messages of our own: every wait has the meeting's limit, which MPI's blocking
// collectives lack, and large arrays take no longer than with those (MPI's nonblocking ones do, they have other
// algorithms).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/mpi/meeting.h"

namespace lockstep::mpi {

// Every call moves less than 2 GiB between two ranks and is part of the meeting's current collective.
class Exchange {
 public:
  static constexpr int few_ranks = 16;  // up to here a message from each to each is as fast as anything

  explicit Exchange(Meeting& meeting);  // which outlives this object

  // Meeting::meet, counted.
  void meet(Collective kind, uint64_t count, uint64_t where, const Scatter& first);
  // all[r * bytes]: what rank r has at `mine`.
  void all_gather(const void* mine, size_t bytes, void* all);
  // Pieces into the meeting's slots.
  void scatter_pieces(const Scatter& scatter);
  // All ranks' pieces to all ranks: rank r has pieces[r] of `array`, which is then the same everywhere.
  void gather_pieces(std::byte* array, std::span<const Piece> pieces);
  void broadcast(std::byte* bytes, size_t count, int root);

  uint64_t bytes_sent() const { return bytes_sent_; }  // by this rank since the start, without the headers

 private:
  void count_sent(const Scatter& scatter);

  Meeting& meeting_;
  std::vector<MPI_Request> requests_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace lockstep::mpi
