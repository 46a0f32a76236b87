// Makes the communicator that a configuration names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi_env.h"

namespace lockstep {

std::vector<std::string_view> communicator_names();

// kind: auto | serial | shm | mpi | hierarchical | nccl. auto: serial for one rank, shm when all ranks are on one node
// that has shared memory, else the faster of mpi and hierarchical, measured. hierarchical: mpi where the ranks of a
// node are no branch of the tree of sums (comm/hierarchical/placement.h) or have no shared memory. nccl: an error here,
// see comm/gpu_communicator.h. `why` (may be null) gets the reason for the choice, for people. Waits end after
// timeout_seconds. Collective; throws Error on all ranks alike. `environment` must outlive the result.
std::unique_ptr<Communicator> make_communicator(std::string_view kind, const MpiEnvironment& environment,
                                                double timeout_seconds, std::string* why);

}  // namespace lockstep
