// Pooling over planes of `block` channels: x[planes][height][width][block], planes = N * C / block.
#pragma once

#include <cstdint>

namespace lockstep {

// Made once by the plan. Output row i covers every row_step-th of the input rows [row_begin[i], row_end[i]), clipped to
// the input; never empty. Steps are 1 but for max_forward.
struct PoolWindows {
  int64_t planes, block, height, width, out_height, out_width;
  const int32_t *row_begin, *row_end, *col_begin, *col_end;
  const float *row_divisor, *col_divisor;  // averages divide by their product
  int64_t row_step = 1, col_step = 1;
};

struct PoolKernels {
  // 2x2 windows side by side (stride 2, no padding), block 1 or a multiple of 8. argmax: 0..3 in row-major order of the
  // window, may be null in inference. Backward writes all of dx; where y is given, only gradients with y > 0 pass.
  void (*max_forward_2x2)(const PoolWindows& w, const void* x, void* y, uint8_t* argmax);
  void (*max_backward_2x2)(const PoolWindows& w, const void* dy, const void* y, const uint8_t* argmax, void* dx);
  // Any windows, any block. argmax: position in the plane (row * width + column), may be null in inference.
  void (*max_forward)(const PoolWindows& w, const void* x, void* y, int32_t* argmax);
  void (*max_backward)(const PoolWindows& w, const void* dy, const void* y, const int32_t* argmax, void* dx);
  void (*average_forward)(const PoolWindows& w, const void* x, void* y);
  void (*average_backward)(const PoolWindows& w, const void* dy, void* dx);
};

// By the type of the values: [0]: fp32, [1]: bf16, [2]: fp16.
namespace isa_generic {
extern const PoolKernels pool_kernels[3];
}
namespace isa_avx2 {
extern const PoolKernels pool_kernels[3];
}
namespace isa_avx512 {
extern const PoolKernels pool_kernels[3];
}

}  // namespace lockstep
