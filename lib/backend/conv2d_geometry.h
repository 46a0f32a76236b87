// Geometry of 2-D convolutions: what can be planned at all, and the shapes of output and weight, for every backend.
#pragma once

#include "backend/specs.h"

namespace lockstep {

// Throws Error for a specification that no backend can plan.
void check_conv2d(const Conv2dSpec& spec);

// [N, out_channels, H, W] by PyTorch's rule. Throws Error where the kernel is larger than the padded input.
Shape conv2d_output(const Conv2dSpec& spec);

}  // namespace lockstep
