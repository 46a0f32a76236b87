// What launchers (srun, mpirun, mpiexec) tell their processes in the environment, and the check that MPI agrees. A
// launcher that MPI can't talk to starts n programs that each believe to be rank 0 of 1 and overwrite one another.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace lockstep {

struct Launcher {
  const char* name;  // for messages
  const char* size;  // variable with the number of ranks
  const char* rank;  // variable that is only set for a process of a launched group
  const char* cure;  // how to start instead
};

// Innermost launcher first: mpirun inside a Slurm allocation sets its own variables beside Slurm's.
std::span<const Launcher> launchers();

using Environment = std::function<const char*(const char* variable)>;  // nullptr: not set
const char* process_environment(const char* variable);                 // this process's own

// What the launcher calls this process, known before MPI has started; -1: there is no launcher.
int launcher_rank(const Environment& environment);
// The launcher that started this process; null: none that is known.
const Launcher* find_launcher(const Environment& environment);

// Empty when the launcher's count and MPI's agree or there is no launcher. Must see the environment as it was before
// MPI_Init, which may set such variables itself.
std::string launch_mismatch(const Environment& environment, int mpi_size);

// A Slurm step of several tasks that gives MPI no way to connect them, as far as can be seen (no PMI's variable is
// set): most MPI libraries then end the process inside MPI_Init. Empty: not so.
std::string missing_pmi(const Environment& environment);

}  // namespace lockstep
