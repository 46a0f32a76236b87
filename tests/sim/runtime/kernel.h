// Where the simulated launch.cuh hands its loops to the scheduler.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace lockstep::sim {

// name: for the trace.
cudaError_t launch_kernel(cudaStream_t stream, std::function<void()> kernel, const char* name);
cudaError_t launch_stuck(cudaStream_t stream);  // a kernel that never ends

}  // namespace lockstep::sim
