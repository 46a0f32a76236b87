#include "support/python.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "core/error.h"

namespace lockstep::test {

std::string python_with(const std::vector<std::string>& modules) {
  const char* chosen = std::getenv("LOCKSTEP_PYTHON");
  for (const char* python : {chosen, "python3", "/usr/bin/python3"}) {
    if (python == nullptr) continue;
    try {
      if (run_process({python, "-c", fmt::format("import {}", fmt::join(modules, ", "))}, 120).exit_code == 0)
        return python;
    } catch (const Error&) {
      continue;  // there is no such program
    }
  }
  MESSAGE(fmt::format("SKIPPED: no Python with {}; name one in LOCKSTEP_PYTHON", fmt::join(modules, " and ")));
  return "";
}

}  // namespace lockstep::test
