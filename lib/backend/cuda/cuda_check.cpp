#include "backend/cuda/cuda_check.h"

#include "core/error.h"

namespace lockstep::cuda {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // forget it: it is told here, and not once more by the next call
  throw_error("{} failed: {}", call, cudaGetErrorString(code));
}

void refuse(const std::string& what) { throw Error(what); }

}  // namespace lockstep::cuda
