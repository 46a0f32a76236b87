#include "comm/mpi/meeting.h"

#include <sched.h>

#include <chrono>
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

// statuses: of each request, when all are done; or MPI_STATUSES_IGNORE.
bool done(std::span<MPI_Request> requests, MPI_Status* statuses) {
  int flag = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses), "MPI_Testall");
  return flag != 0;
}

int most_tags(MPI_Comm comm) {
  int found = 0;
  int* most = nullptr;
  check(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&most), &found), "MPI_Comm_get_attr");
  return found != 0 ? *most : 32767;  // the least that MPI allows
}

}  // namespace

Meeting::Meeting(OwnedComm comm, double timeout_seconds, size_t slot_bytes, const Activity* activity)
    : comm_(std::move(comm)),
      meetings_(OwnedComm::duplicate(comm_.get())),
      roll_call_(comm_.get()),
      rank_(mpi::rank(comm_.get())),
      size_(mpi::size(comm_.get())),
      timeout_seconds_(timeout_seconds),
      activity_(activity),
      slot_bytes_(align_up(slot_bytes)),
      slots_(Buffer::host(static_cast<size_t>(size_) * slot_bytes_)),
      most_tags_(most_tags(meetings_.get())),
      calls_(static_cast<size_t>(size_)),
      requests_(2 * (static_cast<size_t>(size_) - 1)),
      statuses_(requests_.size()) {}

// Straight from each to each: nothing is shorter for few bytes. Sent before anything is received: what MPI does to
// receive takes place while the message is on its way.
void Meeting::meet(Collective kind, uint64_t count, uint64_t where, const Scatter& first) {
  if (failed_) throw PeerFailure(fmt::format("{} after a failed collective", name(kind)));
  call_ = {call_.sequence + 1, Fingerprint::make(kind, count, where, activity_ != nullptr ? activity_->word() : 0)};
  const int tag = tag_of(call_);
  const auto size_of = [&](int r) { return first.pieces.empty() ? 0 : static_cast<int>(first.pieces[r].bytes); };
  const auto after = [&](int i) { return (rank_ + i) % size_; };
  MPI_Request* request = requests_.data();
  for (int i = 1; i < size_; ++i) {
    const int peer = after(size_ - i);
    const std::byte* piece = first.pieces.empty() ? nullptr : first.mine + first.pieces[peer].first;
    check(MPI_Isend(piece, size_of(peer), MPI_BYTE, peer, tag, meetings_.get(), request++), "MPI_Isend");
  }
  for (int i = 1; i < size_; ++i) {
    const int peer = after(i);
    check(MPI_Irecv(slot(peer), static_cast<int>(slot_bytes_), MPI_BYTE, peer, MPI_ANY_TAG, meetings_.get(), request++),
          "MPI_Irecv");
  }
  wait(requests_, false, statuses_.data());
  for (int i = 1; i < size_; ++i) {
    const MPI_Status& status = statuses_[static_cast<size_t>(size_ - 2 + i)];
    if (status.MPI_TAG != tag) tell_apart(tag);
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != size_of(rank_))
      throw_error("{}: rank {} sent {} bytes, expected {}", call_.describe(activity_), after(i), bytes, size_of(rank_));
  }
}

int Meeting::tag_of(const Call& call) const {
  uint64_t hash = call.sequence;
  for (const uint64_t word : {call.fingerprint.what, call.fingerprint.where, call.fingerprint.when}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return static_cast<int>(hash % (static_cast<uint64_t>(most_tags_) + 1));
}

// Every rank whose tag differs from this one's finds the same, so each of the two sends and receives.
void Meeting::tell_apart(int tag) {
  std::vector<MPI_Request> requests;
  const auto differs = [&](int peer) {
    return peer != rank_ && statuses_[static_cast<size_t>(size_ - 2 + (peer + size_ - rank_) % size_)].MPI_TAG != tag;
  };
  for (int r = 0; r < size_; ++r) {
    if (!differs(r)) continue;
    check(MPI_Isend(&call_, sizeof(Call), MPI_BYTE, r, tag::data, comm(), &requests.emplace_back()), "MPI_Isend");
    check(MPI_Irecv(&calls_[r], sizeof(Call), MPI_BYTE, r, tag::data, comm(), &requests.emplace_back()), "MPI_Irecv");
  }
  wait(requests);
  int other = 0;
  while (!differs(other)) ++other;
  throw PeerFailure(
      describe_mismatch(call_.sequence, rank_, call_.fingerprint, other, calls_[other].fingerprint, activity_));
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

void Meeting::wait(std::span<MPI_Request> requests, bool collective, MPI_Status* statuses) {
  for (int test = 0; test < tests_before_yield; ++test)
    if (done(requests, statuses)) return;
  wait_slowly(requests, collective, statuses);
}

void Meeting::wait_slowly(std::span<MPI_Request> requests, bool collective, MPI_Status* statuses) {
  const auto withdrawable = collective ? std::span<MPI_Request>() : requests;
  const double limit = activity_ != nullptr ? activity_->limit(timeout_seconds_) : timeout_seconds_;
  const auto start = Clock::now();
  auto next_look = start + silence;
  while (!done(requests, statuses)) {
    const auto now = Clock::now();
    if (now - start < yields_before_sleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (now < next_look) continue;
    next_look = now + silence;
    if (const std::string& gone = roll_call_.listen(sequence()); !gone.empty()) {
      if (done(requests, statuses)) return;  // it came to this collective before it gave up
      fail(withdrawable, fmt::format("stopped waiting in {}: {}", call_.describe(activity_), gone));
    }
    if (std::chrono::duration<double>(now - start).count() < limit) continue;
    const std::string missing = missing_ranks();
    if (done(requests, statuses)) return;
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

// What has not begun is withdrawn. The rest may still write into the slots and use the communicators: they stay until
// the process ends.
void Meeting::fail(std::span<MPI_Request> requests, const std::string& reason) {
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  failed_ = true;
  static_cast<void>(new Buffer(std::move(slots_)));
  comm_.abandon();
  meetings_.abandon();
  throw PeerFailure(reason);
}

}  // namespace lockstep::mpi
