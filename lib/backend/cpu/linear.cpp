#include "backend/cpu/linear.h"

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"

namespace lockstep {

int64_t check_linear(const LinearSpec& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 2 && in.rank() != 4) throw_error("linear: expected an input [N, K] or [N, C, H, W], found {}", in.str());
  if (spec.out_features < 1) throw_error("linear: expected at least 1 output feature, found {}", spec.out_features);
  if (spec.input.channel_block != 1 && (in.rank() != 4 || in[1] % spec.input.channel_block != 0))
    throw_error("linear: a channel block of {} doesn't fit {}", spec.input.channel_block, in.str());
  if (spec.activation != Activation::none && spec.activation != Activation::relu)
    throw_error("linear: only relu can be fused");
  return in.without_front().numel();
}

std::unique_ptr<LinearPlan> make_cpu_linear(const LinearSpec& spec, const CpuOptions&) {
  check_linear(spec);
  return make_onednn_linear(spec);
}

}  // namespace lockstep
