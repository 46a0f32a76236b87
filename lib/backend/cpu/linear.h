// The ways to compute a fully connected layer on a CPU: oneDNN for large ones, own kernels for tiny ones, where a
// library call costs more than the arithmetic. Both keep weights as LinearWeights and expect spec.input to match them.
#pragma once

#include <memory>

#include "backend/cpu/linear_weights.h"
#include "backend/plans.h"

namespace lockstep {

// Null: no kernel for activations of this type (never for fp32).
std::unique_ptr<LinearPlan> make_onednn_linear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format);
std::unique_ptr<LinearPlan> make_small_linear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format);

}  // namespace lockstep
