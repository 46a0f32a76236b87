#include "comm/abort_all.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "comm/failure.h"

namespace lockstep {

void abort_all(MPI_Comm comm, int exit_code, std::string_view message) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const std::string line = fmt::format("rank {}: {}\n", rank, message);
  // One write, so that the lines of several ranks don't mix; what can't be written can't be reported either.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) exit_code = exit_code == 0 ? 1 : exit_code;
  MPI_Abort(comm, exit_code == 0 ? 1 : exit_code);
  std::_Exit(exit_code == 0 ? 1 : exit_code);
}

void abort_all(MPI_Comm comm, int exit_code, const std::exception& error) {
  if (dynamic_cast<const PeerFailure*>(&error) != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  abort_all(comm, exit_code, std::string_view(error.what()));
}

}  // namespace lockstep
