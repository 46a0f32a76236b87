// The CUDA backend's plans that hold state, as free functions, one per operation, each in a file of its own;
// CudaBackend only forwards to them. They throw Error for a specification that can't be planned, allocate everything
// they will ever need, and queue their work on the context's compute stream. Context and Dnn outlive the plan.
#pragma once

#include <memory>

#include "backend/cuda/context.h"
#include "backend/plans.h"

namespace lockstep::cuda {

class Dnn;  // dnn.h

std::unique_ptr<Conv2dPlan> make_conv2d(Context& context, Dnn& dnn, const Conv2dSpec& spec);
std::unique_ptr<Pool2dPlan> make_pool2d(Context& context, const Pool2dSpec& spec);
// The host waits for the GPU only where statistics are summed over the ranks.
std::unique_ptr<BatchNormPlan> make_batch_norm(Context& context, const BatchNormSpec& spec);
std::unique_ptr<LayerNormPlan> make_layer_norm(Context& context, const LayerNormSpec& spec);
std::unique_ptr<GroupNormPlan> make_group_norm(Context& context, const GroupNormSpec& spec);

}  // namespace lockstep::cuda
