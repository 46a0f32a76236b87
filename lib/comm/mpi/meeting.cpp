#include "comm/mpi/meeting.h"

#include <sched.h>

#include <chrono>
#include <thread>

#include "comm/mpi/mpi_call.h"

namespace lockstep::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int roll_call_tag = 4711;  // the communicator is ours alone: no other message has a tag
constexpr int tests_before_yield = 200;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Meeting::Meeting(MPI_Comm comm, double timeout_seconds)
    : comm_(comm),
      rank_(mpi::rank(comm)),
      size_(mpi::size(comm)),
      timeout_seconds_(timeout_seconds),
      received_(static_cast<size_t>(size_)) {}

void Meeting::meet(Collective kind, uint64_t count, uint64_t where) {
  ++sequence_;
  current_ = Fingerprint::make(kind, count, where);
  const Header mine{sequence_, current_.what, current_.where};
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&mine, sizeof(Header), MPI_BYTE, received_.data(), sizeof(Header), MPI_BYTE, comm_, &request),
        "MPI_Iallgather");
  wait(request);
  for (int r = 0; r < size_; ++r) {
    const Fingerprint other{received_[r].what, received_[r].where};
    if (other != current_ || received_[r].sequence != sequence_)
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
    if (r != rank_) check(MPI_Isend(nullptr, 0, MPI_BYTE, r, roll_call_tag, comm_, &request), "MPI_Isend");
    if (request != MPI_REQUEST_NULL) check(MPI_Request_free(&request), "MPI_Request_free");
  }
  std::vector<int> missing;
  std::vector<char> heard(static_cast<size_t>(size_), 0);
  heard[rank_] = 1;
  for (const auto start = Clock::now(); seconds_since(start) < 1.0;
       std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    for (int r = 0; r < size_; ++r) {
      int flag = 0;
      check(MPI_Iprobe(r, roll_call_tag, comm_, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
      if (flag) heard[r] = 1;
    }
  }
  for (int r = 0; r < size_; ++r)
    if (!heard[r]) missing.push_back(r);
  return missing;
}

}  // namespace lockstep::mpi
