// The CPU backend's plans as free functions, one per operation, each in a file of its own; CpuBackend only forwards to
// them. They throw Error for a specification that can't be planned and allocate everything they will ever need.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace lockstep {

// What `options` allows and the CPU has: never detect.
Bf16Products bf16_products(const CpuOptions& options);

std::unique_ptr<Conv2dPlan> make_cpu_conv2d(const Conv2dSpec& spec, const CpuOptions& options);
std::unique_ptr<LinearPlan> make_cpu_linear(const LinearSpec& spec, const CpuOptions& options);
std::unique_ptr<Pool2dPlan> make_cpu_pool2d(const Pool2dSpec& spec);
std::unique_ptr<BatchNormPlan> make_cpu_batch_norm(const BatchNormSpec& spec);
std::unique_ptr<LayerNormPlan> make_cpu_layer_norm(const LayerNormSpec& spec);
std::unique_ptr<GroupNormPlan> make_cpu_group_norm(const GroupNormSpec& spec);
std::unique_ptr<ActivationPlan> make_cpu_activation(const ActivationSpec& spec);
std::unique_ptr<SoftmaxPlan> make_cpu_softmax(const SoftmaxSpec& spec);
std::unique_ptr<DropoutPlan> make_cpu_dropout(const DropoutSpec& spec);
std::unique_ptr<LossPlan> make_cpu_loss(const LossSpec& spec, int64_t batch, int64_t classes);

}  // namespace lockstep
