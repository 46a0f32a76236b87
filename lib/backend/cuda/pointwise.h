// The backend's stateless operations on device memory, and the plans that are nothing but those. All are queued on the
// compute stream of the context; the arithmetic and its rounding are the CPU's.
#pragma once

#include <memory>

#include "backend/cuda/context.h"
#include "backend/plans.h"

namespace lockstep {

// Backend::copy, fill, add and relu_mask (backend/backend.h).
void cuda_copy(const cuda::Context& context, DType type, size_t n, const void* from, void* to);
void cuda_fill(const cuda::Context& context, size_t n, float value, float* x);
void cuda_add(const cuda::Context& context, DType type, size_t n, const void* a, const void* b, void* y);
void cuda_relu_mask(const cuda::Context& context, DType type, size_t n, const void* y, const void* dy, void* dx);
// Between fp32 and a 16-bit type of equal layout, or one type. Throws Error for other types.
void cuda_convert(const cuda::Context& context, size_t n, DType from, const void* x, DType to, void* y);
// The same between channel blocks: Backend::reorder. Throws Error for shapes that differ and blocks that don't fit.
void cuda_reorder(const cuda::Context& context, const TensorDesc& from, const void* x, const TensorDesc& to, void* y);

// The context outlives the plan.
std::unique_ptr<ActivationPlan> make_cuda_activation(const cuda::Context& context, const ActivationSpec& spec);
// The masks of the CPU's plan for the same key.
std::unique_ptr<DropoutPlan> make_cuda_dropout(const cuda::Context& context, const DropoutSpec& spec);
std::unique_ptr<SoftmaxPlan> make_cuda_softmax(const cuda::Context& context, const SoftmaxSpec& spec);

}  // namespace lockstep
