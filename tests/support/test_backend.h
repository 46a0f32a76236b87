// The backend that tests of layers run on: the CPU's, or, where the environment says LOCKSTEP_TEST_DEVICE=cuda, that of
// the GPU which the test program is linked with.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "backend/factory.h"

namespace lockstep::test {

inline bool on_gpu() {
  const char* device = std::getenv("LOCKSTEP_TEST_DEVICE");
  return device != nullptr && std::string_view(device) == "cuda";
}

inline std::unique_ptr<Backend> make_test_backend(const CpuOptions& cpu = {}) {
  return make_backend(on_gpu() ? "cuda" : "cpu", cpu, {.index = 0});
}

}  // namespace lockstep::test
