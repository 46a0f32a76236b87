#include "comm/mpi/meeting.h"

#include <sched.h>

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int roll_call_tag = 4711;  // the communicator is ours alone: no other message has a tag
constexpr int tests_before_yield = 200;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Meeting::Meeting(OwnedComm comm, double timeout_seconds)
    : comm_(std::move(comm)),
      rank_(mpi::rank(comm_.get())),
      size_(mpi::size(comm_.get())),
      timeout_seconds_(timeout_seconds),
      headers_(std::make_unique<Header[]>(static_cast<size_t>(size_) + 1)) {}

void Meeting::meet(Collective kind, uint64_t count, uint64_t where) {
  if (headers_ == nullptr) throw PeerFailure(fmt::format("{} after a failed collective", name(kind)));
  ++sequence_;
  current_ = Fingerprint::make(kind, count, where);
  Header* mine = headers_.get() + size_;
  *mine = {sequence_, current_.what, current_.where};
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(mine, sizeof(Header), MPI_BYTE, headers_.get(), sizeof(Header), MPI_BYTE, comm(), &request),
        "MPI_Iallgather");
  wait(request);
  for (int r = 0; r < size_; ++r) {
    const Header& theirs = headers_[r];
    const Fingerprint other{theirs.what, theirs.where};
    if (other != current_ || theirs.sequence != sequence_)
      throw PeerFailure(describe_mismatch(sequence_, rank_, current_, r, other));
  }
}

void Meeting::wait(MPI_Request request) {
  int done = 0;
  for (int test = 0; test < tests_before_yield && !done; ++test)
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  const auto start = Clock::now();
  while (!done) {
    sched_yield();
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done || seconds_since(start) < timeout_seconds_) continue;
    const std::vector<int> missing = find_missing();
    abandon();
    throw PeerFailure(fmt::format(
        "waited {:g} s in {} #{} for {}", timeout_seconds_, name(current_.kind()), sequence_,
        missing.empty() ? "an unknown rank" : name_ranks(missing.data(), static_cast<int>(missing.size()))));
  }
}

// Nobody can see where the others are, so all that have waited too long call out, and listen for a second: who is not
// heard is the one that all wait for.
std::vector<int> Meeting::find_missing() const {
  for (int r = 0; r < size_; ++r) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (r != rank_) check(MPI_Isend(nullptr, 0, MPI_BYTE, r, roll_call_tag, comm(), &request), "MPI_Isend");
    if (request != MPI_REQUEST_NULL) check(MPI_Request_free(&request), "MPI_Request_free");
  }
  std::vector<int> missing;
  std::vector<char> heard(static_cast<size_t>(size_), 0);
  heard[rank_] = 1;
  for (const auto start = Clock::now(); seconds_since(start) < 1.0;
       std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    for (int r = 0; r < size_; ++r) {
      int flag = 0;
      check(MPI_Iprobe(r, roll_call_tag, comm(), &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
      if (flag) heard[r] = 1;
    }
  }
  for (int r = 0; r < size_; ++r)
    if (!heard[r]) missing.push_back(r);
  return missing;
}

// The unfinished meeting may still write into the headers and use the communicator: both stay until the process ends.
void Meeting::abandon() {
  static_cast<void>(headers_.release());
  comm_.abandon();
}

}  // namespace lockstep::mpi
