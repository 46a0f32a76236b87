// What there is of NCCL, without its header. Implemented by nccl/, by no_nccl.cpp in builds without NCCL, and through
// the simulated GPU in the tests.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi_env.h"

namespace lockstep {

namespace cuda {
class Context;
}

std::string nccl_version();  // "2.28.9"; empty: this build has no NCCL

// Sums of device memory by NCCL, everything else by messages (nccl/nccl_communicator.h). Collective; every rank has a
// GPU of its own. Throws Error where the build has no NCCL. Environment and context must outlive the result.
std::unique_ptr<Communicator> make_nccl_communicator(const MpiEnvironment& environment, cuda::Context& context,
                                                     double timeout_seconds);

}  // namespace lockstep
