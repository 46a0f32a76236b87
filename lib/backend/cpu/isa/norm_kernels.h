// The passes of a normalisation over x[images][blocks][spatial][block], per channel (blocks * block of them).
// All sums in double. Statistics and their use are separate, so that statistics can be combined over ranks in between.
#pragma once

#include <cstdint>

namespace lockstep {

struct ChannelLayout {
  int64_t images = 0, blocks = 0, spatial = 0, block = 1;
};

struct NormKernels {
  // sum[c] = sum x
  void (*sums)(const ChannelLayout& l, const float* x, double* sum);
  // squares[c] = sum (x - mean[c])^2
  void (*centered_squares)(const ChannelLayout& l, const float* x, const float* mean, double* squares);
  // y = (x - mean[c]) * scale[c] + shift[c]
  void (*normalise)(const ChannelLayout& l, const float* x, const float* mean, const float* scale, const float* shift,
                    float* y);
  // sum_dy[c] = sum dy, sum_dy_x[c] = sum dy * (x - mean[c])
  void (*gradient_sums)(const ChannelLayout& l, const float* x, const float* dy, const float* mean, double* sum_dy,
                        double* sum_dy_x);
  // dx = a[c] * dy + b[c] * (x - mean[c]) + c0[c]; dx may be dy
  void (*gradient)(const ChannelLayout& l, const float* x, const float* dy, const float* mean, const float* a,
                   const float* b, const float* c0, float* dx);
};

namespace isa_generic {
extern const NormKernels norm_kernels;
}
namespace isa_avx2 {
extern const NormKernels norm_kernels;
}
namespace isa_avx512 {
extern const NormKernels norm_kernels;
}

}  // namespace lockstep
