#include "backend/cuda/cuda_check.h"

#include "core/error.h"

namespace lockstep::cuda {

namespace {

// What can be done about it; empty where the code does not tell.
std::string cure(cudaError_t code) {
  if (code == cudaErrorDevicesUnavailable)
    return ": another process has this GPU for itself, or its compute mode lets none in: nvidia-smi shows both; end "
           "that process, or give the job another GPU (CUDA_VISIBLE_DEVICES, Slurm's --gpus-per-node)";
  if (code == cudaErrorMemoryAllocation)
    return ": nvidia-smi shows which processes hold the GPU's memory: end others, or lower train.batch_size "
           "(train.accumulate keeps the global batch)";
  return "";
}

}  // namespace

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // forget it: it is told here, and not once more by the next call
  throw_error("{} failed: {}{}", call, cudaGetErrorString(code), cure(code));
}

void refuse(const std::string& what) { throw Error(what); }

}  // namespace lockstep::cuda
