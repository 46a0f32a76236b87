// What the CUDA runtime's functions have in common: the calling thread's device, and whether it captures a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep::sim {

inline int stream_number(cudaStream_t stream) { return static_cast<int>(reinterpret_cast<intptr_t>(stream)); }

// Counts the call, which may be made to fail and needs a device.
cudaError_t begin_call(const char* function);
cudaError_t begin_call(const char* function, cudaStream_t stream);
// The same for what waits for the device, allocates or frees: not while this thread captures a stream.
cudaError_t begin_unsafe_call(const char* function);
cudaError_t wrong_call(const char* function, const char* what, cudaError_t code = cudaErrorInvalidValue);
void set_capturing(bool capturing);  // the calling thread

}  // namespace lockstep::sim
