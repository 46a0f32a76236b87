// Stands in for lib/comm/staged in builds without CUDA.
#include "comm/gpu_communicator.h"
#include "core/error.h"

namespace lockstep {

std::unique_ptr<Communicator> make_gpu_communicator(std::string_view, const MpiEnvironment&, cuda::Context&, double,
                                                    std::string&, const std::string&) {
  throw_error("this build has no CUDA, so no rank has a GPU");
}

}  // namespace lockstep
