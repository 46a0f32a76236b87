// Register-tiled product of small matrices: a tile of R rows and V vectors of columns stays in registers for the whole
// depth, partial columns are masked, so that operands need no padding.
#include "backend/cpu/isa/small_gemm_kernels.h"

#include "backend/cpu/isa/vec.h"

namespace lockstep::LOCKSTEP_ISA {

namespace {

constexpr int64_t kTileRows = kRegisters >= 32 ? 8 : 4;
constexpr int64_t kTileVectors = 2;

// Rows [row, row + R), columns [col, col + V vectors), the last vector with `last` lanes.
template <int64_t R, int64_t V>
inline __attribute__((always_inline)) void tile(const SmallGemm& g, int64_t row, int64_t col, Lanes last) {
  const Lanes all = first_lanes(kLanes);
  Vec sum[R][V];
  for (int64_t v = 0; v < V; ++v)
    for (int64_t r = 0; r < R; ++r) sum[r][v] = broadcast(0);
  const float* a = g.a + row * g.a_row;
  const float* b = g.b + col;
  for (int64_t k = 0; k < g.depth; ++k, a += g.a_depth, b += g.b_row) {
    Vec right[V];
    for (int64_t v = 0; v < V; ++v) right[v] = load(b + v * kLanes, v == V - 1 ? last : all);
    for (int64_t r = 0; r < R; ++r) {
      const Vec left = broadcast(a[r * g.a_row]);
      for (int64_t v = 0; v < V; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }
  // Decided outside the loops, or the sums would leave their registers.
  if (g.accumulate) {
    for (int64_t r = 0; r < R; ++r)
      for (int64_t v = 0; v < V; ++v)
        sum[r][v] = load(g.c + (row + r) * g.c_row + col + v * kLanes, v == V - 1 ? last : all) + sum[r][v];
  } else if (g.bias != nullptr) {
    for (int64_t v = 0; v < V; ++v) {
      const Vec bias = load(g.bias + col + v * kLanes, v == V - 1 ? last : all);
      for (int64_t r = 0; r < R; ++r) sum[r][v] = sum[r][v] + bias;
    }
  }
  for (int64_t r = 0; r < R; ++r)
    for (int64_t v = 0; v < V; ++v)
      store(g.c + (row + r) * g.c_row + col + v * kLanes, v == V - 1 ? last : all,
            g.relu ? relu(sum[r][v]) : sum[r][v]);
}

template <int64_t V>
void column_block(const SmallGemm& g, int64_t col, Lanes last) {
  int64_t row = 0;
  for (; row + kTileRows <= g.rows; row += kTileRows) tile<kTileRows, V>(g, row, col, last);
  if (kTileRows > 4 && row + 4 <= g.rows) tile<4, V>(g, row, col, last), row += 4;
  if (row + 2 <= g.rows) tile<2, V>(g, row, col, last), row += 2;
  if (row < g.rows) tile<1, V>(g, row, col, last);
}

void gemm(const SmallGemm& g) {
  for (int64_t col = 0; col < g.cols; col += kTileVectors * kLanes) {
    const int64_t left = g.cols - col;
    if (left > kLanes) {
      column_block<2>(g, col, first_lanes(left >= 2 * kLanes ? kLanes : left - kLanes));
    } else {
      column_block<1>(g, col, first_lanes(left));
    }
  }
}

void transpose(int64_t rows, int64_t cols, const float* from, float* to) {
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * rows + r] = from[r * cols + c];
}

}  // namespace

extern const SmallGemmKernels small_gemm_kernels = {.gemm = gemm, .transpose = transpose};

}  // namespace lockstep::LOCKSTEP_ISA
