// Stands in for lib/comm/nccl in builds without NCCL.
#include "comm/nccl_facts.h"
#include "core/error.h"

namespace lockstep {

std::string nccl_version() { return ""; }

std::unique_ptr<Communicator> make_nccl_communicator(const MpiEnvironment&, cuda::Context&, double) {
  throw_error("distributed.backend nccl: this build has no NCCL; write distributed.backend: auto");
}

}  // namespace lockstep
