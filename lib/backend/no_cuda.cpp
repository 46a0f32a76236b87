// Stands in for the CUDA backend in builds that have none.
#include "backend/factory.h"
#include "core/error.h"

namespace lockstep {

std::unique_ptr<Backend> make_cuda_backend() {
  throw_error("device.kind cuda: this build has no CUDA backend; write device: cpu");
}

}  // namespace lockstep
