#include "comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <climits>
#include <exception>

#include "comm/mpi/chunks.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep {
namespace {

// Bytes of all ranks' copies of an array that is simply gathered everywhere (measured).
constexpr size_t gathered_bytes = 256 << 10, gathered_bytes_of_two = 48 << 10;
constexpr size_t sent_at_once = 4000;  // what MPI delivers on a node without asking first, a little less

// Whole arrays to all, and each rank adds; or slices to their owners, and the sums of slices to all. Two ranks exchange
// twice what can be sent at once rather than once what can't.
bool by_whole_arrays(size_t bytes, int ranks) {
  if (ranks == 2 && bytes > sent_at_once && bytes <= 2 * sent_at_once) return false;
  return bytes * static_cast<size_t>(ranks) <= (ranks == 2 ? gathered_bytes_of_two : gathered_bytes);
}

constexpr size_t longest_round = 2 << 20;  // floats; bounds the slots

// The longest piece of any collective.
size_t slot_bytes(int ranks, size_t round) {
  const size_t slices = (round + static_cast<size_t>(ranks) - 1) / static_cast<size_t>(ranks) * sizeof(float);
  return std::max(slices, gathered_bytes / static_cast<size_t>(ranks) + sizeof(double));
}

}  // namespace

struct MpiCommunicator::Round {
  std::span<float> values;
  bool first;
  Collective kind;
  size_t count;  // of the whole array

  void meet(mpi::Exchange& exchange, const mpi::Scatter& scatter) const {
    first ? exchange.meet(kind, count, 0, scatter) : exchange.scatter_pieces(scatter);
  }
};

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const MpiOptions& options)
    : exceptions_(std::uncaught_exceptions()),
      activity_(options.activity == nullptr ? &activity() : options.activity),
      chunk_limit_(std::clamp<size_t>(options.chunk_limit, 1, INT_MAX)),
      round_limit_(std::min(chunk_limit_, longest_round)),
      meeting_(mpi::OwnedComm::duplicate(comm), options.timeout_seconds, slot_bytes(mpi::size(comm), round_limit_),
               activity_),
      exchange_(meeting_),
      packed_sums_(meeting_.size()),
      packing_(Buffer::host(std::max(round_limit_, gathered_bytes / sizeof(float)) * sizeof(uint16_t))),
      arrays_(meeting_.size()),
      doubles_(meeting_.size()),
      packed_(meeting_.size()),
      slices_(meeting_.size()),
      gathered_(meeting_.size()) {}

MpiCommunicator::~MpiCommunicator() {
  if (std::uncaught_exceptions() <= exceptions_) return;
  try {
    meeting_.give_up(activity_->stopped());
  } catch (const Error&) {  // MPI can't tell the others; the end of this process will
  }
}

void MpiCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  if (values.empty()) return meeting_.meet(sum_in(wire), 0);
  const bool small = by_whole_arrays(values.size_bytes(), size());
  for (size_t i = 0; i < chunk_count(values.size(), round_limit_); ++i) {
    const Chunk part = chunk(values.size(), round_limit_, i);
    const Round round{values.subspan(part.first, part.count), i == 0, sum_in(wire), values.size()};
    if (wire == WireFormat::fp32) {
      small ? sum_gathered(round) : sum_slices(round);
    } else {
      small ? sum_gathered_in(wire, round) : sum_slices_in(wire, round);
    }
  }
}

// Every rank's array to all: gathered_.
void MpiCommunicator::gather(const Round& round, const std::byte* mine, size_t bytes) {
  if (size() > mpi::Exchange::few_ranks) {
    if (round.first) meeting_.meet(round.kind, round.count);
    exchange_.all_gather(mine, bytes, meeting_.slot(0));
    for (int r = 0; r < size(); ++r) gathered_[r] = meeting_.slot(0) + static_cast<size_t>(r) * bytes;
    return;
  }
  for (int r = 0; r < size(); ++r) slices_[r] = {0, bytes}, gathered_[r] = r == rank() ? mine : meeting_.slot(r);
  round.meet(exchange_, {mine, slices_});
}

// To each rank its slice of the round; gathered_ is all ranks' parts of this rank's.
void MpiCommunicator::scatter(const Round& round, const std::byte* mine, size_t element_bytes) {
  for (int r = 0; r < size(); ++r) {
    const Chunk theirs = share_of(round.values.size(), r, size());
    slices_[r] = {theirs.first * element_bytes, theirs.count * element_bytes};
    gathered_[r] = r == rank() ? mine + slices_[r].first : meeting_.slot(r);
  }
  round.meet(exchange_, {mine, slices_});
}

void MpiCommunicator::sum_gathered(const Round& round) {
  const std::span<float> values = round.values;
  gather(round, reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  for (int r = 0; r < size(); ++r) arrays_[r] = reinterpret_cast<const float*>(gathered_[r]);
  if (size() == 2) return add_into(values.data(), arrays_[1 - rank()], values.size());
  sum_into(values.data(), arrays_.data(), size(), values.size());
}

void MpiCommunicator::sum_slices(const Round& round) {
  const std::span<float> values = round.values;
  auto* array = reinterpret_cast<std::byte*>(values.data());
  const Chunk mine = share_of(values.size(), rank(), size());
  scatter(round, array, sizeof(float));
  for (int r = 0; r < size(); ++r) arrays_[r] = reinterpret_cast<const float*>(gathered_[r]);
  if (size() == 2) {
    add_into(values.data() + mine.first, arrays_[1 - rank()], mine.count);
  } else {
    sum_into(values.data() + mine.first, arrays_.data(), size(), mine.count);
  }
  exchange_.gather_pieces(array, slices_);
}

void MpiCommunicator::sum_gathered_in(WireFormat wire, const Round& round) {
  const size_t count = round.values.size();
  uint16_t* mine = packing_.as<uint16_t>().data();
  pack(wire, round.values.data(), mine, count);
  gather(round, reinterpret_cast<const std::byte*>(mine), count * sizeof(uint16_t));
  for (int r = 0; r < size(); ++r) packed_[r] = reinterpret_cast<const uint16_t*>(gathered_[r]);
  packed_sums_.sum(wire, packed_.data(), count, mine);
  unpack(wire, mine, round.values.data(), count);
}

void MpiCommunicator::sum_slices_in(WireFormat wire, const Round& round) {
  const size_t count = round.values.size();
  uint16_t* array = packing_.as<uint16_t>().data();
  pack(wire, round.values.data(), array, count);
  const Chunk mine = share_of(count, rank(), size());
  scatter(round, reinterpret_cast<const std::byte*>(array), sizeof(uint16_t));
  for (int r = 0; r < size(); ++r) packed_[r] = reinterpret_cast<const uint16_t*>(gathered_[r]);
  packed_sums_.sum(wire, packed_.data(), mine.count, array + mine.first);
  exchange_.gather_pieces(reinterpret_cast<std::byte*>(array), slices_);
  unpack(wire, array, round.values.data(), count);
}

void MpiCommunicator::all_reduce(std::span<double> values, ReduceOp op) {
  const auto where = static_cast<uint64_t>(op);
  if (values.size_bytes() * static_cast<size_t>(size()) <= gathered_bytes && size() <= mpi::Exchange::few_ranks) {
    for (int r = 0; r < size(); ++r) {
      slices_[r] = {0, values.size_bytes()};
      doubles_[r] = r == rank() ? values.data() : reinterpret_cast<const double*>(meeting_.slot(r));
    }
    const auto* mine = reinterpret_cast<const std::byte*>(values.data());
    exchange_.meet(Collective::all_reduce, values.size(), where, {mine, slices_});
    return combine_into(values.data(), doubles_.data(), size(), values.size(), op);
  }
  meeting_.meet(Collective::all_reduce, values.size(), where);
  auto* all = reinterpret_cast<double*>(meeting_.slot(0));
  const size_t limit = std::min(chunk_limit_, meeting_.slot_bytes() / sizeof(double));
  for (size_t i = 0; i < chunk_count(values.size(), limit); ++i) {
    const Chunk part = chunk(values.size(), limit, i);
    double* mine = &values[part.first];
    exchange_.all_gather(mine, part.count * sizeof(double), all);
    for (int r = 0; r < size(); ++r) doubles_[r] = &all[r * part.count];
    combine_into(mine, doubles_.data(), size(), part.count, op);
  }
}

void MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  meeting_.meet(Collective::broadcast, bytes.size(), static_cast<uint64_t>(root));
  for (size_t i = 0; i < chunk_count(bytes.size(), chunk_limit_); ++i) {
    const Chunk part = chunk(bytes.size(), chunk_limit_, i);
    exchange_.broadcast(&bytes[part.first], part.count, root);
  }
}

// Rank after rank: any length fits, and nothing but the result is allocated.
std::vector<std::vector<std::byte>> MpiCommunicator::all_gather(std::span<const std::byte> mine) {
  meeting_.meet(Collective::all_gather, 0);
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(static_cast<size_t>(size()));
  exchange_.all_gather(&length, sizeof(length), lengths.data());
  std::vector<std::vector<std::byte>> gathered;
  for (int r = 0; r < size(); ++r) {
    auto& theirs = gathered.emplace_back(lengths[r]);
    if (r == rank()) std::copy(mine.begin(), mine.end(), theirs.begin());
    for (size_t i = 0; i < chunk_count(theirs.size(), chunk_limit_); ++i) {
      const Chunk part = chunk(theirs.size(), chunk_limit_, i);
      exchange_.broadcast(&theirs[part.first], part.count, r);
    }
  }
  return gathered;
}

void MpiCommunicator::barrier() { meeting_.meet(Collective::barrier, 0); }

}  // namespace lockstep
