// The communicator of a run whose gradients lie on GPUs: NCCL where every rank has one of its own, else by way of the
// host. Implemented by staged/ in builds with CUDA, else by no_cuda.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "comm/mpi_env.h"

namespace lockstep {

namespace cuda {
class Context;
}

// kind: as in comm/factory.h. auto: nccl where the build has it and no two ranks hold one GPU, else the host's auto,
// staged. nccl: NCCL or an error. Any other: that one, staged. host_sums: why NCCL won't do for this run ("virtual
// ranks are added up in one order"), empty: nothing speaks against it. Collective; throws PoliteError on all ranks
// alike for what can't be. `why` gets the reason for the choice. Environment and context outlive the result.
std::unique_ptr<Communicator> make_gpu_communicator(std::string_view kind, const MpiEnvironment& environment,
                                                    cuda::Context& context, double timeout_seconds, std::string& why,
                                                    const std::string& host_sums = "");

}  // namespace lockstep
