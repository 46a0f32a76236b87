#include "comm/nccl_facts.h"

#include <fmt/format.h>
#include <nccl.h>

namespace lockstep {

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace lockstep
