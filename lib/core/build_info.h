// What this executable was made of, for the log and for the comparison of the ranks.
#pragma once

#include <string>

namespace lockstep {

std::string build_info();  // "lockstep 0.1.0 (Release), GNU 12.2.0"

}  // namespace lockstep
