// Losses on device memory: outputs, targets and gradients lie on the GPU, the sums come back to the host, which waits
// for them when it takes them. Same formulas as the CPU's, everything that is summed in double; the order of a sum is
// that of reduction_shape.h.
#pragma once

#include <memory>

#include "backend/cuda/context.h"
#include "backend/loss_ops.h"

namespace lockstep {

// The context outlives the plan. Throws Error for what can't be planned.
std::unique_ptr<LossPlan> make_cuda_loss(const cuda::Context& context, const LossSpec& spec, int64_t batch,
                                         int64_t classes);

}  // namespace lockstep
