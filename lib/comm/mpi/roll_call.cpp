#include "comm/mpi/roll_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "comm/mpi/mpi_call.h"
#include "comm/mpi/tags.h"

namespace lockstep::mpi {

RollCall::RollCall(MPI_Comm comm)
    : comm_(comm), rank_(mpi::rank(comm)), size_(mpi::size(comm)), words_(std::make_unique<char[]>(longest_words)) {}

void RollCall::send_to_all(const void* data, int bytes, int tag) {
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(data, bytes, MPI_BYTE, r, tag, comm_, &request), "MPI_Isend");
    check(MPI_Request_free(&request), "MPI_Request_free");
  }
}

void RollCall::call(uint64_t sequence) {
  if (called_in_ == sequence) return;
  called_in_ = sequence;
  send_to_all(nullptr, 0, tag::roll_call(sequence));
}

const std::string& RollCall::listen(uint64_t sequence) {
  if (!heard_.empty()) return heard_;
  int flag = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag::gave_up, comm_, &flag, &status), "MPI_Iprobe");
  if (flag) {
    char text[longest_words] = {};
    check(MPI_Recv(text, longest_words - 1, MPI_BYTE, status.MPI_SOURCE, tag::gave_up, comm_, MPI_STATUS_IGNORE),
          "MPI_Recv");
    heard_ = fmt::format("rank {} {}", status.MPI_SOURCE, static_cast<const char*>(text));
  }
  if (flag || called_in_ == sequence) return heard_;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag::roll_call(sequence), comm_, &flag, &status), "MPI_Iprobe");
  if (flag) call(sequence);
  return heard_;
}

std::vector<int> RollCall::find_missing(uint64_t sequence) {
  call(sequence);
  std::vector<char> heard(static_cast<size_t>(size_), 0);
  heard[static_cast<size_t>(rank_)] = 1;
  const auto all_heard = [&] { return std::ranges::count(heard, 0) == 0; };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end && !all_heard()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (int r = 0; r < size_; ++r) {
      int flag = 0;
      check(MPI_Iprobe(r, tag::roll_call(sequence), comm_, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
      if (flag) heard[static_cast<size_t>(r)] = 1;
    }
  }
  std::vector<int> missing;
  for (int r = 0; r < size_; ++r)
    if (!heard[static_cast<size_t>(r)]) missing.push_back(r);
  return missing;
}

void RollCall::give_up(std::string_view words) {
  if (words_ == nullptr) return;
  const size_t length = std::min(words.size(), static_cast<size_t>(longest_words) - 1);
  std::memcpy(words_.get(), words.data(), length);
  send_to_all(words_.release(), static_cast<int>(length), tag::gave_up);
}

}  // namespace lockstep::mpi
