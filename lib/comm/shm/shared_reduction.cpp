#include "comm/shm/shared_reduction.h"

#include <algorithm>
#include <cstring>

#include "comm/rounded_sums.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep {
namespace {

constexpr size_t page = 4096;
constexpr size_t half_staging = SharedReduction::staging_bytes / 2;
constexpr size_t region_bytes = 2 * SharedReduction::slot_bytes + SharedReduction::staging_bytes;

size_t header_bytes(int size) {
  return align_up(sizeof(AbortNotice) + size * (sizeof(PhaseLine) + sizeof(SumsLine)), page);
}

std::vector<PhaseLine*> phase_lines(std::byte* memory, int size) {
  std::vector<PhaseLine*> lines;
  for (int r = 0; r < size; ++r)
    lines.push_back(reinterpret_cast<PhaseLine*>(memory + sizeof(AbortNotice) + r * sizeof(PhaseLine)));
  return lines;
}

std::vector<SumsLine*> sums_lines(std::byte* memory, int size) {
  std::byte* first = memory + sizeof(AbortNotice) + size * sizeof(PhaseLine);
  std::vector<SumsLine*> lines;
  for (int r = 0; r < size; ++r) lines.push_back(reinterpret_cast<SumsLine*>(first + r * sizeof(SumsLine)));
  return lines;
}

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // an empty span may have no address
}

}  // namespace

size_t SharedReduction::memory_bytes(int size) { return header_bytes(size) + size * region_bytes; }

SharedReduction::SharedReduction(std::byte* memory, int rank, int size, const WaitPolicy& policy,
                                 SliceReduction* beyond)
    : meeting_(phase_lines(memory, size), reinterpret_cast<AbortNotice*>(memory), rank, policy),
      slice_sum_(meeting_, beyond),
      background_(sums_lines(memory, size), meeting_, beyond),
      arrays_(size),
      doubles_(size) {
  staging_window_.bytes = staging_bytes;
  for (int r = 0; r < size; ++r) {
    regions_.push_back(memory + header_bytes(size) + r * region_bytes);
    staging_window_.copies.push_back(regions_[r] + 2 * slot_bytes);
  }
}

void SharedReduction::all_reduce_sum(const SharedWindow& window, size_t first, size_t count, WireFormat wire) {
  const std::span<float> values(window.floats(meeting_.rank(), first), count);
  if (!slice_sum_.has_beyond() && values.size_bytes() <= direct_bytes) return all_reduce_sum(values, wire);
  round_to(wire, values);
  // Where the array lies must agree as well: the ranks write each other's copies.
  meeting_.begin(sum_in(wire), count, window.place(first));
  sum_slices(window, first, count, wire);
}

void SharedReduction::all_reduce_sum(std::span<float> values, WireFormat wire) {
  meeting_.begin(sum_in(wire), values.size());
  round_to(wire, values);
  const bool lends = !slice_sum_.has_beyond();
  if (lends && values.size_bytes() <= slot_bytes) {
    sum_small(values);
    return round_to(wire, values);
  }
  const size_t round = (lends ? half_staging : staging_bytes) / sizeof(float);
  for (size_t i = 0; i * round < values.size(); ++i) {
    const std::span<float> part = values.subspan(i * round, std::min(round, values.size() - i * round));
    lends ? sum_lent(part, i % 2 * half_staging, wire) : sum_copied(part, wire);
  }
  if (lends) meeting_.sync();  // the staging is free again for any other collective
}

// Between rounds nobody else touches this rank's staging: the others read and write it only before the second meeting
// of sum_slices.
void SharedReduction::sum_copied(std::span<float> values, WireFormat wire) {
  copy_bytes(staging(meeting_.rank()), reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  sum_slices(staging_window_, 0, values.size(), wire);
  copy_bytes(reinterpret_cast<std::byte*>(values.data()), staging(meeting_.rank()), values.size_bytes());
}

// Of every array only what other ranks need is copied: their slices to them, and back the sum of each slice. Rounds
// alternate between the halves of the staging: a half is written again two rounds later, when every rank has come to a
// meeting after it read that half.
void SharedReduction::sum_lent(std::span<float> values, size_t half, WireFormat wire) {
  const int rank = meeting_.rank(), size = meeting_.size();
  const auto lent = [&](int r) { return reinterpret_cast<float*>(staging(r) + half); };
  const auto copy = [](float* to, const float* from, size_t count) {
    copy_bytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), count * sizeof(float));
  };
  const Shard mine = slice_of(0, values.size(), rank, size);
  const size_t end = mine.first + mine.count;
  copy(lent(rank), values.data(), mine.first);
  copy(lent(rank) + end, values.data() + end, values.size() - end);
  meeting_.sync();
  for (int r = 0; r < size; ++r) arrays_[r] = (r == rank ? values.data() : lent(r)) + mine.first;
  sum_into(lent(rank) + mine.first, arrays_.data(), size, mine.count);
  round_to(wire, {lent(rank) + mine.first, mine.count});
  meeting_.post();
  copy(values.data() + mine.first, lent(rank) + mine.first, mine.count);
  meeting_.wait_all();
  for (int i = 1; i < size; ++i) {
    const int r = (rank + i) % size;
    const Shard theirs = slice_of(0, values.size(), r, size);
    copy(values.data() + theirs.first, lent(r) + theirs.first, theirs.count);
  }
}

// A slot is written again two phases later, when every rank has posted the phase between and so has read it.
void SharedReduction::sum_small(std::span<float> values) {
  const int parity = meeting_.next_parity();
  copy_bytes(slot(meeting_.rank(), parity), reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  meeting_.sync();
  for (int r = 0; r < meeting_.size(); ++r) arrays_[r] = reinterpret_cast<float*>(slot(r, parity));
  if (meeting_.size() == 2) {
    add_into(values.data(), arrays_[1 - meeting_.rank()], values.size());
  } else {
    sum_into(values.data(), arrays_.data(), meeting_.size(), values.size());
  }
}

void SharedReduction::sum_slices(const SharedWindow& window, size_t first, size_t count, WireFormat wire) {
  meeting_.sync();
  slice_sum_.start(window, first, count, wire, {meeting_.sequence(), meeting_.current()});
  slice_sum_.wait();
  meeting_.sync();
}

void SharedReduction::all_reduce(std::span<double> values, ReduceOp op) {
  meeting_.begin(Collective::all_reduce, values.size(), static_cast<uint64_t>(op));
  if (values.empty()) return meeting_.sync();
  const size_t round = slot_bytes / sizeof(double);
  for (size_t at = 0; at < values.size(); at += round) {
    const size_t count = std::min(round, values.size() - at);
    const int parity = meeting_.next_parity();
    std::memcpy(slot(meeting_.rank(), parity), &values[at], count * sizeof(double));
    meeting_.sync();
    for (int r = 0; r < meeting_.size(); ++r) doubles_[r] = reinterpret_cast<const double*>(slot(r, parity));
    combine_into(&values[at], doubles_.data(), meeting_.size(), count, op);
  }
}

void SharedReduction::broadcast(std::span<std::byte> bytes, int root) {
  meeting_.begin(Collective::broadcast, bytes.size(), static_cast<uint64_t>(root));
  constexpr size_t half = half_staging;
  for (size_t at = 0; at < bytes.size(); at += half) {
    const size_t count = std::min(half, bytes.size() - at);
    std::byte* shared = staging(root) + static_cast<size_t>(meeting_.next_parity()) * half;
    if (meeting_.rank() == root) copy_bytes(shared, &bytes[at], count);
    meeting_.sync();
    if (meeting_.rank() != root) copy_bytes(&bytes[at], shared, count);
  }
  meeting_.sync();  // the staging is free again for any other collective
}

std::vector<std::vector<std::byte>> SharedReduction::all_gather(std::span<const std::byte> mine) {
  meeting_.begin(Collective::all_gather, 0);
  const int parity = meeting_.next_parity();
  const uint64_t length = mine.size();
  std::memcpy(slot(meeting_.rank(), parity), &length, sizeof(length));
  meeting_.sync();
  std::vector<std::vector<std::byte>> gathered(meeting_.size());
  size_t longest = 0;
  for (int r = 0; r < meeting_.size(); ++r) {
    uint64_t theirs = 0;
    std::memcpy(&theirs, slot(r, parity), sizeof(theirs));
    gathered[r].resize(theirs);
    longest = std::max<size_t>(longest, theirs);
  }
  constexpr size_t half = half_staging;
  for (size_t at = 0; at < longest; at += half) {
    const size_t offset = static_cast<size_t>(meeting_.next_parity()) * half;
    if (at < mine.size()) copy_bytes(staging(meeting_.rank()) + offset, &mine[at], std::min(half, mine.size() - at));
    meeting_.sync();
    for (int r = 0; r < meeting_.size(); ++r) {
      if (at >= gathered[r].size()) continue;
      copy_bytes(&gathered[r][at], staging(r) + offset, std::min(half, gathered[r].size() - at));
    }
  }
  meeting_.sync();
  return gathered;
}

void SharedReduction::barrier() { agree(Collective::barrier, 0, 0); }

void SharedReduction::agree(Collective kind, uint64_t count, uint64_t where) {
  meeting_.begin(kind, count, where);
  meeting_.sync();
}

}  // namespace lockstep
