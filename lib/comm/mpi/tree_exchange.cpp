#include "comm/mpi/tree_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/chunks.h"
#include "comm/mpi/tags.h"
#include "comm/shm/sum_kernels.h"

namespace lockstep::mpi {
TreeExchange::TreeExchange(OwnedComm comm, std::vector<int> names, const Activity* activity, size_t round_bytes)
    : comm_(std::move(comm)),
      names_(std::move(names)),
      activity_(activity),
      rank_(mpi::rank(comm_.get())),
      round_(std::max<size_t>(1, round_bytes / sizeof(float))),
      messages_(Buffer::host(names_.size() * message_bytes)),
      requests_(2 * names_.size(), MPI_REQUEST_NULL),
      arrays_(names_.size()) {
  // What the others send in a round: whole arrays, or this rank's part of the array.
  const size_t parts = (round_ + names_.size() - 1) / names_.size() * names_.size() * sizeof(float);
  staging_ = Buffer::host(std::max(parts, whole_bytes));
}

TreeExchange::~TreeExchange() {
  if (idle()) return;
  static_cast<void>(new Buffer(std::move(messages_)));
  static_cast<void>(new Buffer(std::move(staging_)));
  comm_.abandon();
}

void TreeExchange::start(std::span<float> values, const Call& call) {
  values_ = values;
  call_ = call;
  done_ = 0;
  phase_ = Phase::headers;
  std::memcpy(message(rank_), &call, sizeof(call));
  size_t bytes = sizeof(call);
  if (in_header() && !values.empty()) {
    std::memcpy(message(rank_) + sizeof(call), values.data(), values.size_bytes());
    bytes += values.size_bytes();
  }
  for (int i = 1; i < size(); ++i) receive((rank_ + i) % size(), message((rank_ + i) % size()), message_bytes);
  for (int i = 1; i < size(); ++i) send((rank_ + size() - i) % size(), message(rank_), bytes);
}

bool TreeExchange::advance() {
  while (!idle()) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (!done) return false;
    finish_step();
  }
  return true;
}

void TreeExchange::finish_step() {
  switch (phase_) {
    case Phase::idle: break;
    case Phase::headers:
      check_headers();
      if (!in_header()) return start_round();
      for (int r = 0; r < size(); ++r) arrays_[r] = reinterpret_cast<float*>(message(r) + sizeof(Call));
      sum_into(values_.data(), arrays_.data(), size(), values_.size());
      phase_ = Phase::idle;
      break;
    case Phase::whole: sum_into(current_.data(), arrays_.data(), size(), current_.size()); return start_round();
    case Phase::scatter: {
      const Chunk mine = share_of(current_.size(), rank_, size());
      sum_into(current_.data() + mine.first, arrays_.data(), size(), mine.count);
      return start_gather();
    }
    case Phase::gather: return start_round();
  }
}

bool TreeExchange::by_whole_arrays() const {
  return size() == 2 || values_.size_bytes() * (names_.size() - 1) <= whole_bytes;
}

void TreeExchange::start_round() {
  if (done_ == values_.size()) {
    phase_ = Phase::idle;
    return;
  }
  current_ = values_.subspan(done_, std::min(round_, values_.size() - done_));
  done_ += current_.size();
  const bool whole = by_whole_arrays();
  phase_ = whole ? Phase::whole : Phase::scatter;
  const Chunk all{0, current_.size()};
  const Chunk mine = whole ? all : share_of(current_.size(), rank_, size());
  auto* received = static_cast<float*>(staging_.data());
  for (int r = 0; r < size(); ++r) {
    arrays_[r] = r == rank_ ? current_.data() + mine.first : received;
    if (r == rank_) continue;
    receive(r, received, mine.count * sizeof(float));
    received += mine.count;
  }
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank_ + i) % size();
    const Chunk theirs = whole ? all : share_of(current_.size(), peer, size());
    send(peer, current_.data() + theirs.first, theirs.count * sizeof(float));
  }
}

void TreeExchange::start_gather() {
  phase_ = Phase::gather;
  const Chunk mine = share_of(current_.size(), rank_, size());
  for (int i = 1; i < size(); ++i) {
    const int from = (rank_ + i) % size(), to = (rank_ + size() - i) % size();
    const Chunk theirs = share_of(current_.size(), from, size());
    receive(from, current_.data() + theirs.first, theirs.count * sizeof(float));
    send(to, current_.data() + mine.first, mine.count * sizeof(float));
  }
}

void TreeExchange::check_headers() const {
  for (int r = 0; r < size(); ++r) {
    Call theirs;
    std::memcpy(&theirs, message(r), sizeof(theirs));
    if (theirs.fingerprint != call_.fingerprint || theirs.sequence != call_.sequence)
      throw PeerFailure(describe_mismatch(call_.sequence, names_[rank_], call_.fingerprint, names_[r],
                                          theirs.fingerprint, activity_));
  }
}

std::vector<int> TreeExchange::missing() {
  std::vector<int> late;
  for (int r = 0; r < size(); ++r) {
    int done = 0;  // MPI_Testall tells of all of them only
    check(MPI_Test(&requests_[r], &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) late.push_back(names_[r]);
  }
  return late;
}

void TreeExchange::send(int peer, const void* data, size_t bytes) {
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag::data, comm_.get(),
                  &requests_[names_.size() + static_cast<size_t>(peer)]),
        "MPI_Isend");
}

void TreeExchange::receive(int peer, void* data, size_t bytes) {
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag::data, comm_.get(), &requests_[peer]),
        "MPI_Irecv");
}

}  // namespace lockstep::mpi
