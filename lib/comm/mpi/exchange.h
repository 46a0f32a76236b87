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

// Part of an array, in bytes.
struct Piece {
  size_t first = 0;
  size_t bytes = 0;
};

// Every call moves less than 2 GiB between two ranks and is part of the meeting's current collective.
class Exchange {
 public:
  explicit Exchange(Meeting& meeting);  // which outlives this object

  // all[r * bytes]: what rank r has at `mine`.
  void all_gather(const void* mine, size_t bytes, void* all);
  // Sends pieces[r] of `mine` to rank r, and receives from rank r its piece of this rank at from[r]. A rank's piece has
  // the same size for all; from[rank()] is not written.
  void scatter_pieces(const std::byte* mine, std::span<const Piece> pieces, std::span<std::byte* const> from);
  // All ranks' pieces to all ranks: rank r has pieces[r] of `array`, which is then the same everywhere.
  void gather_pieces(std::byte* array, std::span<const Piece> pieces);
  void broadcast(std::byte* bytes, size_t count, int root);

  uint64_t bytes_sent() const { return bytes_sent_; }  // by this rank since the start, without the headers

 private:
  Meeting& meeting_;
  std::vector<MPI_Request> requests_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace lockstep::mpi
