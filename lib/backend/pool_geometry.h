// Geometry of 2-D pooling: PyTorch's output size, window and divisor rules, shared by the plan and the layer's
// inference.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/specs.h"

namespace lockstep {

// One pooled axis: output i covers input [begin[i], end[i]), clipped to the input; an average divides by divisor[i]
// (times the other axis's).
struct PoolAxis {
  std::vector<int32_t> begin, end;
  std::vector<float> divisor;
};

// axis: 0 height, 1 width. Throws Error for a window that doesn't fit.
PoolAxis pool_axis(const Pool2dSpec& spec, int axis);

}  // namespace lockstep
