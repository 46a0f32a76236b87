// Fully connected layers on a GPU: three cuBLASLt products, the forward one with bias and ReLU in it, the weight
// gradient's with the bias gradient, and between two layers (LinearPair) the input gradient's with the first one's mask
// and bias gradient; what the library has no algorithm for, kernels of our own do. Weights are kept as PyTorch has
// them, [out][in], the inputs in the order in which the activation has them. Activations in 16 bits are multiplied with
// weights (and added to a bias) rounded to their type, sums are fp32's; weight and bias gradients are fp32.
#pragma once

#include <memory>

#include "backend/cuda/blas_lt.h"
#include "backend/plans.h"

namespace lockstep {

// blas: outlives the plan. Throws Error for what can't be planned.
std::unique_ptr<LinearPlan> make_cuda_linear(const cuda::BlasLt& blas, const LinearSpec& spec);

}  // namespace lockstep
