// The backend's stateless operations on host memory.
#pragma once

#include <cstddef>

#include "backend/cpu/isa/half_kernels.h"
#include "backend/cpu/isa/pointwise_kernels.h"
#include "core/tensor.h"

namespace lockstep {

// The kernels for this machine.
const PointwiseKernels& pointwise_kernels();

// Those for bf16 or f16.
const HalfKernels& half_kernels(DType type);
// Place of an activation's type in tables of kernels: fp32, bf16, fp16.
size_t type_index(DType type);

// Copies tensors between channel blocks, and between fp32 and 16 bits. Throws Error where shapes differ, a block
// doesn't divide C, or there is no such conversion.
void reorder_channels(const TensorDesc& from, const void* x, const TensorDesc& to, void* y);

}  // namespace lockstep
