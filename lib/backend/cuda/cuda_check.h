// Turns CUDA's error codes into Error, naming the call.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace lockstep::cuda {

// Throws Error "cudaMalloc failed: out of memory" unless code is cudaSuccess.
void check(cudaError_t code, const char* call);

// Throws Error, from .cu files: nvcc does not take the headers of core/error.h.
[[noreturn]] void refuse(const std::string& what);

}  // namespace lockstep::cuda
