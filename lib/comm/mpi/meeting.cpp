#include "comm/mpi/meeting.h"

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "comm/mpi/tags.h"

namespace lockstep::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int tests_before_yield =
    5000;  // about a millisecond; where MPI knows that ranks share cores it yields itself
constexpr auto yields_before_sleep = std::chrono::seconds(1);  // then a rank is waiting for a file, not for arithmetic
constexpr auto silence = std::chrono::milliseconds(10);        // between two looks for messages beside the collective

bool done(std::span<MPI_Request> requests) {
  int flag = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE), "MPI_Testall");
  return flag != 0;
}

}  // namespace

Meeting::Meeting(OwnedComm comm, double timeout_seconds, const Activity* activity)
    : comm_(std::move(comm)),
      roll_call_(comm_.get()),
      rank_(mpi::rank(comm_.get())),
      size_(mpi::size(comm_.get())),
      timeout_seconds_(timeout_seconds),
      activity_(activity),
      messages_(std::make_unique<Message[]>(static_cast<size_t>(size_))),
      requests_(2 * (static_cast<size_t>(size_) - 1)) {}

// Straight from each to each: nothing is shorter for few bytes.
void Meeting::meet(Collective kind, uint64_t count, uint64_t where, std::span<const std::byte> carried) {
  if (messages_ == nullptr) throw PeerFailure(fmt::format("{} after a failed collective", name(kind)));
  const Fingerprint mine = Fingerprint::make(kind, count, where, activity_ != nullptr ? activity_->word() : 0);
  call_ = {call_.sequence + 1, mine};
  Message& own = messages_[static_cast<size_t>(rank_)];
  own.call = call_;
  if (!carried.empty()) std::memcpy(own.carried, carried.data(), carried.size());
  const auto bytes = static_cast<int>(offsetof(Message, carried) + carried.size());
  MPI_Request* request = requests_.data();
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    check(
        MPI_Irecv(&messages_[static_cast<size_t>(peer)], sizeof(Message), MPI_BYTE, peer, tag::data, comm(), request++),
        "MPI_Irecv");
  }
  for (int i = 1; i < size_; ++i)
    check(MPI_Isend(&own, bytes, MPI_BYTE, (rank_ + size_ - i) % size_, tag::data, comm(), request++), "MPI_Isend");
  wait(requests_);
  for (int r = 0; r < size_; ++r) {
    const Call& theirs = messages_[static_cast<size_t>(r)].call;
    if (theirs.fingerprint == mine && theirs.sequence == call_.sequence) continue;
    throw PeerFailure(describe_mismatch(call_.sequence, rank_, mine, r, theirs.fingerprint, activity_));
  }
}

void Meeting::all_gather(const void* mine, int bytes, void* all) {
  auto* place = static_cast<char*>(all);
  if (bytes > 0) std::memcpy(place + static_cast<ptrdiff_t>(rank_) * bytes, mine, static_cast<size_t>(bytes));
  MPI_Request* request = requests_.data();
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    check(MPI_Irecv(place + static_cast<ptrdiff_t>(peer) * bytes, bytes, MPI_BYTE, peer, tag::data, comm(), request++),
          "MPI_Irecv");
  }
  for (int i = 1; i < size_; ++i)
    check(MPI_Isend(mine, bytes, MPI_BYTE, (rank_ + size_ - i) % size_, tag::data, comm(), request++), "MPI_Isend");
  wait(requests_);
}

void Meeting::wait(std::span<MPI_Request> requests, bool collective) {
  for (int test = 0; test < tests_before_yield; ++test)
    if (done(requests)) return;
  wait_slowly(requests, collective);
}

void Meeting::wait_slowly(std::span<MPI_Request> requests, bool collective) {
  const auto withdrawable = collective ? std::span<MPI_Request>() : requests;
  const double limit = activity_ != nullptr ? activity_->limit(timeout_seconds_) : timeout_seconds_;
  const auto start = Clock::now();
  auto next_look = start + silence;
  while (!done(requests)) {
    const auto now = Clock::now();
    if (now - start < yields_before_sleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (now < next_look) continue;
    next_look = now + silence;
    if (const std::string& gone = roll_call_.listen(sequence()); !gone.empty()) {
      if (done(requests)) return;  // it came to this collective before it gave up
      fail(withdrawable, fmt::format("stopped waiting in {}: {}", call_.describe(activity_), gone));
    }
    if (std::chrono::duration<double>(now - start).count() < limit) continue;
    const std::string missing = missing_ranks();
    if (done(requests)) return;
    const std::string reason = fmt::format("waited {:g} s in {} for {}", limit, call_.describe(activity_), missing);
    give_up("gave up: " + reason);
    fail(withdrawable, reason);
  }
}

void Meeting::check_peers() {
  if (const std::string& gone = roll_call_.listen(sequence()); !gone.empty()) throw PeerFailure(gone);
}

std::string Meeting::missing_ranks() {
  const std::vector<int> missing = roll_call_.find_missing(sequence());
  return missing.empty() ? "an unknown rank" : name_ranks(missing.data(), static_cast<int>(missing.size()));
}

// What has not begun is withdrawn. The rest may still write into the messages and use the communicator: both stay until
// the process ends.
void Meeting::fail(std::span<MPI_Request> requests, const std::string& reason) {
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  static_cast<void>(messages_.release());
  comm_.abandon();
  throw PeerFailure(reason);
}

}  // namespace lockstep::mpi
