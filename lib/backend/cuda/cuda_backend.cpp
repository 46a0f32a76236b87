// The CUDA backend as a whole, once it has a plan for every operation.
#include "backend/factory.h"
#include "core/error.h"

namespace lockstep {

std::unique_ptr<Backend> make_cuda_backend(int gpu) {
  throw_error("device.kind cuda: GPU {} is there, but this version has no layers for it yet; write device: cpu", gpu);
}

}  // namespace lockstep
