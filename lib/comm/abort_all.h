// How a run ends when one rank fails: every rank ends, within seconds, with the reason in the output.
#pragma once

#include <mpi.h>

#include <exception>
#include <string_view>

namespace lockstep {

// Prints "rank r: message" in one write to stderr and ends all ranks of `comm` through MPI_Abort.
[[noreturn]] void abort_all(MPI_Comm comm, int exit_code, std::string_view message);

// The same for a caught exception. A rank that fails because of a peer (PeerFailure) first gives that peer a moment to
// say what really happened.
[[noreturn]] void abort_all(MPI_Comm comm, int exit_code, const std::exception& error);

}  // namespace lockstep
