// How eval and predict run on the ranks that mpirun or srun started: MPI's start and end watched, every mistake told
// once and by one exit code on all ranks.
#pragma once

#include <functional>

#include "comm/mpi_env.h"

namespace lockstep::app {

// work: what a rank does; returns the exit code, throws. Returns the exit code of the process.
int on_ranks(const std::function<int(const MpiEnvironment&)>& work);

}  // namespace lockstep::app
