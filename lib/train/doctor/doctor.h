// The whole examination of a launch: gathers the facts of all ranks and tries what training would do first.
#pragma once

#include "comm/mpi_env.h"
#include "train/config.h"
#include "train/doctor/facts.h"

namespace lockstep {

// What computes and communicates here, as found: "oneDNN 2.6.3", "CUDA 13.0", "NCCL 2.28.9".
std::vector<LibraryVersion> library_versions();
// What is known before MPI starts, which changes the environment.
RunFacts facts_of_launch(const Environment& environment);
// Adds what MPI and all ranks know, and what `config` would run on (null: it could not be read, `refusal` is set
// already). Collective; the result is the same on all ranks, except for what only rank 0 sees of libraries.
void examine(const Config* config, const MpiEnvironment& environment, RunFacts& facts);

}  // namespace lockstep
