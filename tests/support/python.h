// Python packages as judges of what the program writes. Tests that need one are skipped without it.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::test {

// The first of the Python that LOCKSTEP_PYTHON names, python3 and the distribution's own that can import all of these;
// empty, with a line that says SKIPPED and what is missing, where there is none.
std::string python_with(const std::vector<std::string>& modules);

}  // namespace lockstep::test
