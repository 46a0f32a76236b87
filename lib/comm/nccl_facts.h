// What there is of NCCL, without its header. Implemented by nccl/, by no_nccl.cpp in builds without NCCL, and by the
// simulated GPU of the tests.
#pragma once

#include <string>

namespace lockstep {

std::string nccl_version();  // "2.28.9"; empty: this build has no NCCL

}  // namespace lockstep
