// "A mistake that every rank can see ends politely": work done on every rank whose failure is told to all ranks, so
// that all of them throw the same error, main prints it once, and all leave through MPI_Finalize with the same code.
#pragma once

#include <mpi.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/failure.h"

namespace lockstep {

class Communicator;

// Thrown on every rank with the same text; nobody is waiting for anybody, so no abort is needed.
class PoliteError : public Error {
 public:
  using Error::Error;
};

// The same of a run under way: what was asked for was right, but it could not be done.
class AgreedFailure : public PoliteError {
 public:
  using PoliteError::PoliteError;
};

// The text for all from each rank's failure (nullopt: it was well); nullopt when all are well. The first failing rank
// speaks, named unless all ranks said the same.
std::optional<std::string> agreed_failure(const std::vector<std::optional<std::string>>& failures);

// Runs `work` on every rank, then agrees (collective). The work itself must not leave other ranks waiting inside a
// collective when it fails. PeerFailure passes through: the peers are not here to agree.
void run_agreed(MPI_Comm comm, const std::function<void()>& work);
void run_agreed(Communicator& comm, const std::function<void()>& work);

}  // namespace lockstep
