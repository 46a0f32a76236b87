#include "comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <climits>
#include <exception>

#include "comm/mpi/chunks.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep {
namespace {

// All ranks' copies of an array that is simply gathered everywhere (measured).
constexpr size_t gathered_bytes = 256 << 10, gathered_bytes_of_two = 48 << 10;
constexpr size_t longest_round = 2 << 20;  // floats; bounds the staging

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const MpiOptions& options)
    : exceptions_(std::uncaught_exceptions()),
      activity_(options.activity == nullptr ? &activity() : options.activity),
      meeting_(mpi::OwnedComm::duplicate(comm), options.timeout_seconds, activity_),
      exchange_(meeting_),
      packed_sums_(meeting_.size()),
      chunk_limit_(std::clamp<size_t>(options.chunk_limit, 1, INT_MAX)),
      round_limit_(std::min(chunk_limit_, longest_round)),
      arrays_(meeting_.size()),
      doubles_(meeting_.size()),
      packed_(meeting_.size()),
      slices_(meeting_.size()),
      received_(meeting_.size()) {
  const size_t ranks = static_cast<size_t>(size());
  const size_t slices = (round_limit_ + ranks - 1) / ranks * ranks * sizeof(float);
  staging_ = Buffer::host(std::max({slices, gathered_bytes, ranks * sizeof(double)}));
}

MpiCommunicator::~MpiCommunicator() {
  if (std::uncaught_exceptions() <= exceptions_) return;
  try {
    meeting_.give_up(activity_->stopped());
  } catch (const Error&) {  // MPI can't tell the others; the end of this process will
  }
}

void MpiCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  if (wire == WireFormat::fp32 && values.size_bytes() <= mpi::Meeting::carried_bytes) {
    meeting_.meet(sum_in(wire), values.size(), 0, std::as_bytes(values));
    for (int r = 0; r < size(); ++r) arrays_[r] = reinterpret_cast<const float*>(meeting_.carried(r));
    return sum_into(values.data(), arrays_.data(), size(), values.size());
  }
  meeting_.meet(sum_in(wire), values.size());
  const bool small =
      values.size_bytes() * static_cast<size_t>(size()) <= (size() == 2 ? gathered_bytes_of_two : gathered_bytes);
  for (size_t i = 0; i < chunk_count(values.size(), round_limit_); ++i) {
    const Chunk part = chunk(values.size(), round_limit_, i);
    const std::span<float> round = values.subspan(part.first, part.count);
    if (wire == WireFormat::fp32) {
      small ? sum_gathered(round) : sum_slices(round);
    } else {
      small ? sum_gathered_in(wire, round) : sum_slices_in(wire, round);
    }
  }
}

void MpiCommunicator::sum_gathered(std::span<float> values) {
  float* all = staging_.as<float>().data();
  exchange_.all_gather(values.data(), values.size_bytes(), all);
  for (int r = 0; r < size(); ++r) arrays_[r] = all + r * values.size();
  if (size() == 2) return add_into(values.data(), arrays_[1 - rank()], values.size());
  sum_into(values.data(), arrays_.data(), size(), values.size());
}

void MpiCommunicator::sum_slices(std::span<float> values) {
  auto* array = reinterpret_cast<std::byte*>(values.data());
  const Chunk mine = share_of(values.size(), rank(), size());
  share_out(values.size(), sizeof(float), static_cast<std::byte*>(staging_.data()));
  exchange_.scatter_pieces(array, slices_, received_);
  for (int r = 0; r < size(); ++r) arrays_[r] = reinterpret_cast<const float*>(received_[r]);
  arrays_[rank()] = values.data() + mine.first;
  if (size() == 2) {
    add_into(values.data() + mine.first, arrays_[1 - rank()], mine.count);
  } else {
    sum_into(values.data() + mine.first, arrays_.data(), size(), mine.count);
  }
  exchange_.gather_pieces(array, slices_);
}

void MpiCommunicator::sum_gathered_in(WireFormat wire, std::span<float> values) {
  uint16_t* all = staging_.as<uint16_t>().data();
  uint16_t* mine = all + static_cast<size_t>(size()) * values.size();
  pack(wire, values.data(), mine, values.size());
  exchange_.all_gather(mine, values.size() * sizeof(uint16_t), all);
  for (int r = 0; r < size(); ++r) packed_[r] = all + r * values.size();
  packed_sums_.sum(wire, packed_.data(), values.size(), mine);
  unpack(wire, mine, values.data(), values.size());
}

// The packed round fills the first half of the staging, what the others send the second.
void MpiCommunicator::sum_slices_in(WireFormat wire, std::span<float> values) {
  uint16_t* array = staging_.as<uint16_t>().data();
  pack(wire, values.data(), array, values.size());
  const Chunk mine = share_of(values.size(), rank(), size());
  share_out(values.size(), sizeof(uint16_t), static_cast<std::byte*>(staging_.data()) + staging_.bytes() / 2);
  exchange_.scatter_pieces(reinterpret_cast<std::byte*>(array), slices_, received_);
  for (int r = 0; r < size(); ++r) packed_[r] = reinterpret_cast<const uint16_t*>(received_[r]);
  packed_[rank()] = array + mine.first;
  packed_sums_.sum(wire, packed_.data(), mine.count, array + mine.first);
  exchange_.gather_pieces(reinterpret_cast<std::byte*>(array), slices_);
  unpack(wire, array, values.data(), values.size());
}

// Every rank's slice of `count` elements, and where this rank's own is received from each.
void MpiCommunicator::share_out(size_t count, size_t element_bytes, std::byte* received) {
  const size_t mine = share_of(count, rank(), size()).count * element_bytes;
  for (int r = 0; r < size(); ++r) {
    const Chunk theirs = share_of(count, r, size());
    slices_[r] = {theirs.first * element_bytes, theirs.count * element_bytes};
    received_[r] = received + mine * static_cast<size_t>(r);
  }
}

void MpiCommunicator::all_reduce(std::span<double> values, ReduceOp op) {
  if (values.size_bytes() <= mpi::Meeting::carried_bytes) {
    meeting_.meet(Collective::all_reduce, values.size(), static_cast<uint64_t>(op), std::as_bytes(values));
    for (int r = 0; r < size(); ++r) doubles_[r] = reinterpret_cast<const double*>(meeting_.carried(r));
    return combine_into(values.data(), doubles_.data(), size(), values.size(), op);
  }
  meeting_.meet(Collective::all_reduce, values.size(), static_cast<uint64_t>(op));
  const auto all = staging_.as<double>();
  const size_t limit = std::min(chunk_limit_, all.size() / static_cast<size_t>(size()));
  for (size_t i = 0; i < chunk_count(values.size(), limit); ++i) {
    const Chunk part = chunk(values.size(), limit, i);
    double* mine = &values[part.first];
    exchange_.all_gather(mine, part.count * sizeof(double), all.data());
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
