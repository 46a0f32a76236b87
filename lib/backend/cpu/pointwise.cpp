#include "backend/cpu/pointwise.h"

#include <cstring>
#include <type_traits>

#include "core/cpu_features.h"
#include "core/error.h"
#include "core/half.h"

namespace lockstep {

const PointwiseKernels& pointwise_kernels() {
  return select_isa(isa_generic::pointwise_kernels, isa_avx2::pointwise_kernels, isa_avx512::pointwise_kernels);
}

const HalfKernels& half_kernels(DType type) {
  return select_isa(isa_generic::half_kernels, isa_avx2::half_kernels, isa_avx512::half_kernels)[type_index(type) - 1];
}

size_t type_index(DType type) {
  switch (type) {
    case DType::f32: return 0;
    case DType::bf16: return 1;
    case DType::f16: return 2;
    case DType::i64: break;
  }
  throw_error("activations can't be {}", name(type));
}

static void check_block(const TensorDesc& desc) {
  const int64_t block = desc.channel_block;
  if (block < 1 || (block > 1 && (desc.shape.rank() < 2 || desc.shape[1] % block != 0)))
    throw_error("reorder: channel block {} does not divide the channels of {}", block, desc.shape.str());
}

// Writes go in order; channel c of pixel s lies at (c / block * spatial + s) * block + c % block.
template <class From, class To>
static void reorder_elements(const Shape& shape, int64_t source, const void* from, int64_t target, void* to) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  int64_t spatial = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) spatial *= shape[axis];
  for (int64_t n = 0; n < shape[0]; ++n, x += shape[1] * spatial) {
    for (int64_t c = 0; c < shape[1]; c += target) {
      for (int64_t s = 0; s < spatial; ++s) {
        for (int64_t lane = 0; lane < target; ++lane) {
          const int64_t channel = c + lane;
          const From value = x[(channel / source * spatial + s) * source + channel % source];
          if constexpr (std::is_same_v<From, To>)
            *y++ = value;
          else
            narrow(widen(value), *y++);
        }
      }
    }
  }
}

void reorder_channels(const TensorDesc& from, const void* x, const TensorDesc& to, void* y) {
  if (from.shape != to.shape)
    throw_error("reorder: expected two tensors of one shape, found {} and {}", from.shape.str(), to.shape.str());
  check_block(from);
  check_block(to);
  const size_t source = type_index(from.dtype), target = type_index(to.dtype);
  if (source != target && source != 0 && target != 0)
    throw_error("reorder: no conversion from {} to {}", name(from.dtype), name(to.dtype));
  if (from.channel_block == to.channel_block) {
    const auto count = static_cast<size_t>(from.shape.numel());
    if (source == target) {
      if (x != y) std::memcpy(y, x, from.bytes());
    } else if (target == 0) {
      half_kernels(from.dtype).widen(count, x, static_cast<float*>(y));
    } else {
      half_kernels(to.dtype).narrow(count, static_cast<const float*>(x), y);
    }
    return;
  }
  using Reorder = void (*)(const Shape&, int64_t, const void*, int64_t, void*);
  static constexpr Reorder kReorders[3][3] = {
      {reorder_elements<float, float>, reorder_elements<float, Bf16>, reorder_elements<float, F16>},
      {reorder_elements<Bf16, float>, reorder_elements<Bf16, Bf16>, nullptr},
      {reorder_elements<F16, float>, nullptr, reorder_elements<F16, F16>}};
  kReorders[source][target](from.shape, from.channel_block, x, to.channel_block, y);
}

}  // namespace lockstep
