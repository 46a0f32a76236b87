// Turns CUDA's error codes into Error, naming the call.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

// Throws Error "cudaMalloc failed: out of memory" unless code is cudaSuccess.
void check(cudaError_t code, const char* call);

}  // namespace lockstep::cuda
