// The backend's stateless operations on host memory.
#pragma once

#include <cstddef>

#include "backend/cpu/isa/pointwise_kernels.h"
#include "core/tensor.h"

namespace lockstep {

// The kernels for this machine.
const PointwiseKernels& pointwise_kernels();

// Copies f32 tensors between channel blocks. Throws Error where shapes or types differ or a block doesn't divide C.
void reorder_channels(const TensorDesc& from, const float* x, const TensorDesc& to, float* y);

}  // namespace lockstep
