// Geometry of 2-D pooling: PyTorch's output size, window and divisor rules, shared by the plan and the layer's
// inference.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/specs.h"

namespace lockstep {

// One pooled axis: output i covers every step-th input of [begin[i], end[i]), clipped to the input; an average divides
// by divisor[i] (times the other axis's).
struct PoolAxis {
  int32_t step = 1;                 // 1 but for a maximum with dilation, where begin need not ascend
  std::vector<int32_t> begin, end;  // end: after the last input covered
  std::vector<float> divisor;
};

// axis: 0 height, 1 width. Throws Error for a window that doesn't fit.
PoolAxis pool_axis(const Pool2dSpec& spec, int axis);

// How much of an axis a window spans, gaps included.
int64_t pool_span(const Pool2dSpec& spec, int axis);

}  // namespace lockstep
