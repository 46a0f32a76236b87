#include "backend/linear_checks.h"

#include "core/error.h"

namespace lockstep {

void check_linear(const LinearSpec& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 2 && in.rank() != 4)
    throw_error("linear: expected an input [N, K] or [N, C, H, W], found {}", in.str());
  if (spec.out_features < 1) throw_error("linear: expected at least 1 output feature, found {}", spec.out_features);
  const int64_t block = spec.input.channel_block;
  if (block != 1 && (in.rank() != 4 || block < 1 || in[1] % block != 0))
    throw_error("linear: a channel block of {} doesn't fit {}", block, in.str());
  if (spec.activation != Activation::none && spec.activation != Activation::relu)
    throw_error("linear: only relu can be fused");
}

}  // namespace lockstep
