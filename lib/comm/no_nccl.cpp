// Stands in for lib/comm/nccl in builds without NCCL.
#include "comm/nccl_facts.h"

namespace lockstep {

std::string nccl_version() { return ""; }

}  // namespace lockstep
