// What the environment tells NCCL: it reads NCCL_* variables that nobody else checks, so a run says which are set.
#pragma once

#include <string>

namespace lockstep {

// "NCCL_DEBUG=INFO NCCL_IB_DISABLE=1", by name, long values cut; empty: none is set. environment: as ::environ, ends
// with null.
std::string nccl_settings(const char* const* environment);
std::string nccl_settings();  // of this process

}  // namespace lockstep
