// How commands run on the ranks that mpirun or srun started: MPI's start and end watched, every mistake told once and
// by one exit code on all ranks.
#pragma once

#include <functional>
#include <string>

#include "comm/mpi_env.h"
#include "comm/watchdog.h"

namespace lockstep::app {

// "rank 3", or "lockstep" without a launcher: known before MPI has started.
std::string name_of_process(int launcher_rank);

// The exit code of a rank: what `work` returns, or the one that belongs to what it throws, which is told. The watchdog
// then expects MPI's end within end_limit() seconds, asked for afterwards. A failure that the others don't know of ends
// all ranks.
int tell_failures(const MpiEnvironment& mpi, Watchdog& watchdog, const std::function<double()>& end_limit,
                  const std::function<int()>& work);

// A command without options for it: quiet, ten minutes to start.
int on_ranks(const std::function<int(const MpiEnvironment&)>& work);

}  // namespace lockstep::app
