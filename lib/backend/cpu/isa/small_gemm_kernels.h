// Matrix products too small for a library call: one register-tiled kernel, and the transposition backward needs.
#pragma once

#include <cstdint>

namespace lockstep {

// c[i][j] = relu?(sum over k of a(i, k) * b[k][j] + start), start: bias[j], or c[i][j] when accumulate, or nothing. The
// sum runs over k in order from zero, and start is added to the whole of it: in most cases PyTorch's bits.
// Any size, no alignment, nothing is read or written outside the matrices.
struct SmallGemm {
  int64_t rows = 0, cols = 0, depth = 0;
  const float* a = nullptr;  // a(i, k) = a[i * a_row + k * a_depth]; strides may be 0
  int64_t a_row = 0, a_depth = 1;
  const float* b = nullptr;  // row k at b + k * b_row
  int64_t b_row = 0;
  const float* bias = nullptr;
  bool accumulate = false, relu = false;
  float* c = nullptr;  // row i at c + i * c_row
  int64_t c_row = 0;
};

struct SmallGemmKernels {
  void (*gemm)(const SmallGemm& problem);
  // to[c][r] = from[r][c]
  void (*transpose)(int64_t rows, int64_t cols, const float* from, float* to);
};

namespace isa_generic {
extern const SmallGemmKernels small_gemm_kernels;
}
namespace isa_avx2 {
extern const SmallGemmKernels small_gemm_kernels;
}
namespace isa_avx512 {
extern const SmallGemmKernels small_gemm_kernels;
}

}  // namespace lockstep
