#include "comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <climits>

#include "comm/mpi/chunks.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep {
namespace {

constexpr size_t gathered_bytes = 256 << 10;  // all ranks' copies of an array that is simply gathered everywhere
constexpr size_t longest_round = 2 << 20;     // floats; bounds the staging

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const MpiOptions& options)
    : meeting_(mpi::OwnedComm::duplicate(comm), options.timeout_seconds),
      chunk_limit_(std::clamp<size_t>(options.chunk_limit, 1, INT_MAX)),
      round_limit_(std::min(chunk_limit_, longest_round)),
      arrays_(meeting_.size()),
      doubles_(meeting_.size()),
      counts_(meeting_.size()),
      offsets_(meeting_.size()),
      my_counts_(meeting_.size()),
      my_offsets_(meeting_.size()) {
  const size_t ranks = static_cast<size_t>(size());
  const size_t slices = (round_limit_ + ranks - 1) / ranks * ranks * sizeof(float);
  staging_ = Buffer::host(std::max({slices, gathered_bytes, ranks * sizeof(double)}));
}

void MpiCommunicator::all_reduce_sum(std::span<float> values) {
  meeting_.meet(Collective::all_reduce_sum, values.size());
  const bool small = values.size_bytes() * static_cast<size_t>(size()) <= gathered_bytes;
  const size_t limit = size() == 2 ? chunk_limit_ : round_limit_;
  for (size_t i = 0; i < chunk_count(values.size(), limit); ++i) {
    const Chunk part = chunk(values.size(), limit, i);
    const std::span<float> round = values.subspan(part.first, part.count);
    if (size() == 2) {
      const int count = static_cast<int>(part.count);
      mpi::check(MPI_Allreduce(MPI_IN_PLACE, round.data(), count, MPI_FLOAT, MPI_SUM, meeting_.comm()),
                 "MPI_Allreduce");
    } else if (small) {
      sum_gathered(round);
    } else {
      sum_slices(round);
    }
  }
}

void MpiCommunicator::sum_gathered(std::span<float> values) {
  float* all = staging_.as<float>().data();
  const int count = static_cast<int>(values.size());
  mpi::check(MPI_Allgather(values.data(), count, MPI_FLOAT, all, count, MPI_FLOAT, meeting_.comm()), "MPI_Allgather");
  for (int r = 0; r < size(); ++r) arrays_[r] = all + r * values.size();
  sum_into(values.data(), arrays_.data(), size(), values.size());
}

void MpiCommunicator::sum_slices(std::span<float> values) {
  float* received = staging_.as<float>().data();
  const Chunk mine = share_of(values.size(), rank(), size());
  for (int r = 0; r < size(); ++r) {
    const Chunk theirs = share_of(values.size(), r, size());
    counts_[r] = static_cast<int>(theirs.count);
    offsets_[r] = static_cast<int>(theirs.first);
    my_counts_[r] = static_cast<int>(mine.count);
    my_offsets_[r] = static_cast<int>(mine.count * static_cast<size_t>(r));
    arrays_[r] = received + my_offsets_[r];
  }
  mpi::check(MPI_Alltoallv(values.data(), counts_.data(), offsets_.data(), MPI_FLOAT, received, my_counts_.data(),
                           my_offsets_.data(), MPI_FLOAT, meeting_.comm()),
             "MPI_Alltoallv");
  sum_into(values.data() + mine.first, arrays_.data(), size(), mine.count);
  mpi::check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.data(), counts_.data(), offsets_.data(),
                            MPI_FLOAT, meeting_.comm()),
             "MPI_Allgatherv");
}

void MpiCommunicator::all_reduce(std::span<double> values, ReduceOp op) {
  meeting_.meet(Collective::all_reduce, values.size(), static_cast<uint64_t>(op));
  const auto all = staging_.as<double>();
  const size_t limit = std::min(chunk_limit_, all.size() / static_cast<size_t>(size()));
  for (size_t i = 0; i < chunk_count(values.size(), limit); ++i) {
    const Chunk part = chunk(values.size(), limit, i);
    double* mine = &values[part.first];
    const int count = static_cast<int>(part.count);
    mpi::check(MPI_Allgather(mine, count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, meeting_.comm()), "MPI_Allgather");
    for (int r = 0; r < size(); ++r) doubles_[r] = &all[r * part.count];
    combine_into(mine, doubles_.data(), size(), part.count, op);
  }
}

void MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  meeting_.meet(Collective::broadcast, bytes.size(), static_cast<uint64_t>(root));
  for (size_t i = 0; i < chunk_count(bytes.size(), chunk_limit_); ++i) {
    const Chunk part = chunk(bytes.size(), chunk_limit_, i);
    mpi::check(MPI_Bcast(&bytes[part.first], static_cast<int>(part.count), MPI_BYTE, root, meeting_.comm()),
               "MPI_Bcast");
  }
}

// Rank after rank: any length fits, and nothing but the result is allocated.
std::vector<std::vector<std::byte>> MpiCommunicator::all_gather(std::span<const std::byte> mine) {
  meeting_.meet(Collective::all_gather, 0);
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(static_cast<size_t>(size()));
  mpi::check(MPI_Allgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, meeting_.comm()),
             "MPI_Allgather");
  std::vector<std::vector<std::byte>> gathered;
  for (int r = 0; r < size(); ++r) {
    auto& theirs = gathered.emplace_back(lengths[r]);
    if (r == rank()) std::copy(mine.begin(), mine.end(), theirs.begin());
    for (size_t i = 0; i < chunk_count(theirs.size(), chunk_limit_); ++i) {
      const Chunk part = chunk(theirs.size(), chunk_limit_, i);
      mpi::check(MPI_Bcast(&theirs[part.first], static_cast<int>(part.count), MPI_BYTE, r, meeting_.comm()),
                 "MPI_Bcast");
    }
  }
  return gathered;
}

void MpiCommunicator::barrier() { meeting_.meet(Collective::barrier, 0); }

}  // namespace lockstep
