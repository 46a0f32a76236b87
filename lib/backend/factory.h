// Makes the backend that a configuration names.
#pragma once

#include <memory>
#include <string_view>

#include "backend/backend.h"

namespace lockstep {

// kind: auto | cpu | cuda. auto is the CPU until a CUDA backend is part of the build and finds a device. Throws Error
// for another kind, or for cuda where it is missing.
std::unique_ptr<Backend> make_backend(std::string_view kind, const CpuOptions& cpu);

// nullptr: no device. Throws Error when the build has no CUDA backend (no_cuda.cpp).
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace lockstep
