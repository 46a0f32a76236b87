#include "backend/cpu/pointwise.h"

#include <cstring>

#include "core/cpu_features.h"
#include "core/error.h"

namespace lockstep {

const PointwiseKernels& pointwise_kernels() {
  return select_isa(isa_generic::pointwise_kernels, isa_avx2::pointwise_kernels, isa_avx512::pointwise_kernels);
}

static void check_block(const TensorDesc& desc) {
  const int64_t block = desc.channel_block;
  if (block < 1 || (block > 1 && (desc.shape.rank() < 2 || desc.shape[1] % block != 0)))
    throw_error("reorder: channel block {} does not divide the channels of {}", block, desc.shape.str());
}

void reorder_channels(const TensorDesc& from, const float* x, const TensorDesc& to, float* y) {
  if (from.shape != to.shape || from.dtype != DType::f32 || to.dtype != DType::f32)
    throw_error("reorder: expected two f32 tensors of one shape, found {} and {}", from.shape.str(), to.shape.str());
  check_block(from);
  check_block(to);
  const int64_t source = from.channel_block, target = to.channel_block;
  if (source == target) {
    if (x != y) std::memcpy(y, x, from.bytes());
    return;
  }
  const Shape& shape = from.shape;
  int64_t spatial = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) spatial *= shape[axis];
  // Writes go in order; channel c of pixel s lies at (c / block * spatial + s) * block + c % block.
  for (int64_t n = 0; n < shape[0]; ++n, x += shape[1] * spatial) {
    for (int64_t c = 0; c < shape[1]; c += target) {
      for (int64_t s = 0; s < spatial; ++s) {
        for (int64_t lane = 0; lane < target; ++lane) {
          const int64_t channel = c + lane;
          *y++ = x[(channel / source * spatial + s) * source + channel % source];
        }
      }
    }
  }
}

}  // namespace lockstep
