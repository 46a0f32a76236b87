// Pooling over planes of `block` channels: x[planes][height][width][block], planes = N * C / block.
#pragma once

#include <cstdint>

namespace lockstep {

// Made once by the plan. Output row i covers the input rows [row_begin[i], row_end[i]), clipped to the input; never
// empty.
struct PoolWindows {
  int64_t planes, block, height, width, out_height, out_width;
  const int32_t *row_begin, *row_end, *col_begin, *col_end;
  const float *row_divisor, *col_divisor;  // averages divide by their product
};

struct PoolKernels {
  // 2x2 windows side by side (stride 2, no padding), block 1, 8 or 16. argmax: 0..3 in row-major order of the window,
  // may be null in inference. Backward writes all of dx; where y is given, only gradients with y > 0 pass.
  void (*max_forward_2x2)(const PoolWindows& w, const float* x, float* y, uint8_t* argmax);
  void (*max_backward_2x2)(const PoolWindows& w, const float* dy, const float* y, const uint8_t* argmax, float* dx);
  // Any windows, any block. argmax: position in the plane (row * width + column), may be null in inference.
  void (*max_forward)(const PoolWindows& w, const float* x, float* y, int32_t* argmax);
  void (*max_backward)(const PoolWindows& w, const float* dy, const float* y, const int32_t* argmax, float* dx);
  void (*average_forward)(const PoolWindows& w, const float* x, float* y);
  void (*average_backward)(const PoolWindows& w, const float* dy, float* dx);
};

namespace isa_generic {
extern const PoolKernels pool_kernels;
}
namespace isa_avx2 {
extern const PoolKernels pool_kernels;
}
namespace isa_avx512 {
extern const PoolKernels pool_kernels;
}

}  // namespace lockstep
