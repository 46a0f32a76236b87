// Stands in for lib/backend/cuda in builds without CUDA.
#include "backend/factory.h"
#include "backend/gpu.h"
#include "core/error.h"

namespace lockstep {

GpuFacts gpu_facts() {
  GpuFacts facts;
  facts.why_none = "this build has no CUDA backend";
  return facts;
}

std::vector<LibraryVersion> gpu_libraries() { return {}; }

std::unique_ptr<Backend> make_cuda_backend(const GpuOptions&) {
  throw_error("device.kind cuda: this build has no CUDA backend; write device: cpu");
}

}  // namespace lockstep
