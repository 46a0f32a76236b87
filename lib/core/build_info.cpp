#include "core/build_info.h"

#include <fmt/format.h>

namespace lockstep {

std::string build_info() {
  return fmt::format("lockstep {} ({}), {}", LOCKSTEP_VERSION, LOCKSTEP_BUILD_TYPE, LOCKSTEP_COMPILER);
}

}  // namespace lockstep
