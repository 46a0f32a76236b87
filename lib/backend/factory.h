// Makes the backend that a configuration names.
#pragma once

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/gpu.h"

namespace lockstep {

// kind: auto | cpu | cuda. auto is the CPU; who prefers a GPU has looked for one (train/resources.h). gpu: for cuda.
// Throws Error for another kind, or for cuda where it is missing.
std::unique_ptr<Backend> make_backend(std::string_view kind, const CpuOptions& cpu, const GpuOptions& gpu = {});

// A loss of numbers in host memory, whatever computed them: rows one by one, as evaluation wants them.
std::unique_ptr<LossPlan> make_host_loss(const LossSpec& spec, int64_t batch, int64_t classes);

// Throws Error when the build has no CUDA backend (no_cuda.cpp).
std::unique_ptr<Backend> make_cuda_backend(const GpuOptions& options);

}  // namespace lockstep
