// From the type of a tensor to the type of its elements.
#pragma once

#include "backend/cuda/cuda_check.h"
#include "core/half.h"
#include "core/shape.h"

namespace lockstep::cuda {

// Calls work with a null pointer to float, Bf16 or F16. Throws Error for a type that activations don't have.
template <class Work>
void by_type(DType type, const Work& work) {
  switch (type) {
    case DType::f32: return work(static_cast<float*>(nullptr));
    case DType::bf16: return work(static_cast<Bf16*>(nullptr));
    case DType::f16: return work(static_cast<F16*>(nullptr));
    case DType::i64: break;
  }
  refuse("activations can't be " + std::string(name(type)));
}

}  // namespace lockstep::cuda
