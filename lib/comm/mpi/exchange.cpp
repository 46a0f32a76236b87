#include "comm/mpi/exchange.h"

#include "comm/mpi/tags.h"

namespace lockstep::mpi {

Exchange::Exchange(Meeting& meeting) : meeting_(meeting), requests_(2 * (static_cast<size_t>(meeting.size()) - 1)) {}

void Exchange::all_gather(const void* mine, size_t bytes, void* all) {
  const int count = static_cast<int>(bytes), size = meeting_.size();
  bytes_sent_ += bytes * static_cast<size_t>(size - 1);
  if (size <= few_ranks) return meeting_.all_gather(mine, count, all);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, meeting_.comm(), &request), "MPI_Iallgather");
  meeting_.wait({&request, 1}, true);
}

void Exchange::count_sent(const Scatter& scatter) {
  for (int r = 0; r < static_cast<int>(scatter.pieces.size()); ++r)
    if (r != meeting_.rank()) bytes_sent_ += scatter.pieces[static_cast<size_t>(r)].bytes;
}

void Exchange::meet(Collective kind, uint64_t count, uint64_t where, const Scatter& first) {
  count_sent(first);
  meeting_.meet(kind, count, where, first);
}

void Exchange::scatter_pieces(const Scatter& scatter) {
  count_sent(scatter);
  const int size = meeting_.size(), rank = meeting_.rank();
  const auto own = static_cast<int>(scatter.pieces[static_cast<size_t>(rank)].bytes);
  MPI_Request* request = requests_.data();
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + size - i) % size;
    check(MPI_Irecv(meeting_.slot(peer), own, MPI_BYTE, peer, tag::data, meeting_.comm(), request++), "MPI_Irecv");
  }
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + i) % size;
    const Piece& piece = scatter.pieces[static_cast<size_t>(peer)];
    check(MPI_Isend(scatter.mine + piece.first, static_cast<int>(piece.bytes), MPI_BYTE, peer, tag::data,
                    meeting_.comm(), request++),
          "MPI_Isend");
  }
  meeting_.wait(requests_);
}

// A ring: each rank hands on to the next what it got last, so that on many nodes a piece crosses each network link
// once.
void Exchange::gather_pieces(std::byte* array, std::span<const Piece> pieces) {
  const int size = meeting_.size(), rank = meeting_.rank();
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int i = 0; i + 1 < size; ++i) {
    const Piece& out = pieces[static_cast<size_t>((rank + size - i) % size)];
    const Piece& in = pieces[static_cast<size_t>((previous + size - i) % size)];
    check(MPI_Irecv(array + in.first, static_cast<int>(in.bytes), MPI_BYTE, previous, tag::data, meeting_.comm(),
                    &requests_[0]),
          "MPI_Irecv");
    check(MPI_Isend(array + out.first, static_cast<int>(out.bytes), MPI_BYTE, next, tag::data, meeting_.comm(),
                    &requests_[1]),
          "MPI_Isend");
    bytes_sent_ += out.bytes;
    meeting_.wait({requests_.data(), 2});
  }
}

void Exchange::broadcast(std::byte* bytes, size_t count, int root) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibcast(bytes, static_cast<int>(count), MPI_BYTE, root, meeting_.comm(), &request), "MPI_Ibcast");
  meeting_.wait({&request, 1}, true);
}

}  // namespace lockstep::mpi
