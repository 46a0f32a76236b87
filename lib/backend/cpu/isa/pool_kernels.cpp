// Pooling kernels. PyTorch's rule for a maximum: a value replaces the candidate if it is greater or NaN, scanning the
// window in row-major order; so the first of equal maxima wins, and a NaN is never lost.
#include "backend/cpu/isa/pool_kernels.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// A blocked pixel is worked on in vectors of 8 channels: wider ones are taken apart badly where the machine lacks them.
constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(kLanes), aligned(1), may_alias));

template <int Block>
void max_row_2x2(const float* upper, const float* lower, int64_t out_width, float* y, uint8_t* argmax) {
  for (int64_t i = 0; i < out_width; ++i, upper += 2 * Block, lower += 2 * Block) {
    for (int lane = 0; lane < Block; lane += kLanes, y += kLanes) {
      const float* const corner[4] = {upper + lane, upper + Block + lane, lower + lane, lower + Block + lane};
      Floats best = *reinterpret_cast<const Floats*>(corner[0]);
      Ints where = {};
      for (int k = 1; k < 4; ++k) {
        const Floats value = *reinterpret_cast<const Floats*>(corner[k]);
        const Ints take = (value > best) | (value != value);
        best = take ? value : best;
        where = (take & k) | (~take & where);
      }
      *reinterpret_cast<Floats*>(y) = best;
      if (argmax == nullptr) continue;
      *reinterpret_cast<Bytes*>(argmax) = __builtin_convertvector(where, Bytes);
      argmax += kLanes;
    }
  }
}

template <>
void max_row_2x2<1>(const float* upper, const float* lower, int64_t out_width, float* y, uint8_t* argmax) {
  for (int64_t i = 0; i < out_width; ++i) {
    const float value[4] = {upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]};
    float best = value[0];
    int where = 0;
    for (int k = 1; k < 4; ++k) {
      const bool take = (value[k] > best) | (value[k] != value[k]);
      best = take ? value[k] : best;
      where = take ? k : where;
    }
    y[i] = best;
    if (argmax != nullptr) argmax[i] = static_cast<uint8_t>(where);
  }
}

template <int Block, bool Masked>
void spread_row_2x2(const float* dy, const float* y, const uint8_t* argmax, int64_t out_width, float* upper,
                    float* lower) {
  for (int64_t i = 0; i < out_width; ++i, upper += 2 * Block, lower += 2 * Block) {
    for (int lane = 0; lane < Block; lane += kLanes, dy += kLanes, argmax += kLanes) {
      float* const corner[4] = {upper + lane, upper + Block + lane, lower + lane, lower + Block + lane};
      Floats gradient = *reinterpret_cast<const Floats*>(dy);
      if constexpr (Masked) {
        gradient = *reinterpret_cast<const Floats*>(y) > 0 ? gradient : Floats{};
        y += kLanes;
      }
      const Ints where = __builtin_convertvector(*reinterpret_cast<const Bytes*>(argmax), Ints);
      for (int k = 0; k < 4; ++k) *reinterpret_cast<Floats*>(corner[k]) = (where == k) ? gradient : Floats{};
    }
  }
}

template <bool Masked>
void spread_row_2x2_plain(const float* dy, const float* y, const uint8_t* argmax, int64_t out_width, float* upper,
                          float* lower) {
  for (int64_t i = 0; i < out_width; ++i) {
    const float gradient = Masked && !(y[i] > 0) ? 0.0F : dy[i];
    upper[2 * i] = argmax[i] == 0 ? gradient : 0.0F;
    upper[2 * i + 1] = argmax[i] == 1 ? gradient : 0.0F;
    lower[2 * i] = argmax[i] == 2 ? gradient : 0.0F;
    lower[2 * i + 1] = argmax[i] == 3 ? gradient : 0.0F;
  }
}

void zero(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = 0;
}

void max_forward_2x2(const PoolWindows& w, const float* x, float* y, uint8_t* argmax) {
  const int64_t in_row = w.width * w.block, out_row = w.out_width * w.block;
  for (int64_t plane = 0; plane < w.planes; ++plane) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      const float* upper = x + (plane * w.height + 2 * i) * in_row;
      const int64_t out = (plane * w.out_height + i) * out_row;
      uint8_t* row_argmax = argmax == nullptr ? nullptr : argmax + out;
      if (w.block == 16)
        max_row_2x2<16>(upper, upper + in_row, w.out_width, y + out, row_argmax);
      else if (w.block == 8)
        max_row_2x2<8>(upper, upper + in_row, w.out_width, y + out, row_argmax);
      else
        max_row_2x2<1>(upper, upper + in_row, w.out_width, y + out, row_argmax);
    }
  }
}

template <bool Masked>
void spread_2x2(const PoolWindows& w, const float* dy, const float* y, const uint8_t* argmax, float* dx) {
  const int64_t in_row = w.width * w.block, out_row = w.out_width * w.block;
  for (int64_t plane = 0; plane < w.planes; ++plane) {
    float* const plane_dx = dx + plane * w.height * in_row;
    for (int64_t i = 0; i < w.out_height; ++i) {
      float *upper = plane_dx + 2 * i * in_row, *lower = upper + in_row;
      const int64_t out = (plane * w.out_height + i) * out_row;
      const float* row_y = Masked ? y + out : nullptr;
      if (w.block == 16)
        spread_row_2x2<16, Masked>(dy + out, row_y, argmax + out, w.out_width, upper, lower);
      else if (w.block == 8)
        spread_row_2x2<8, Masked>(dy + out, row_y, argmax + out, w.out_width, upper, lower);
      else
        spread_row_2x2_plain<Masked>(dy + out, row_y, argmax + out, w.out_width, upper, lower);
      // An odd last column and row lie under no window.
      zero(upper + 2 * out_row, in_row - 2 * out_row);
      zero(lower + 2 * out_row, in_row - 2 * out_row);
    }
    zero(plane_dx + 2 * w.out_height * in_row, (w.height - 2 * w.out_height) * in_row);
  }
}

void max_backward_2x2(const PoolWindows& w, const float* dy, const float* y, const uint8_t* argmax, float* dx) {
  if (y != nullptr)
    spread_2x2<true>(w, dy, y, argmax, dx);
  else
    spread_2x2<false>(w, dy, nullptr, argmax, dx);
}

void max_forward(const PoolWindows& w, const float* x, float* y, int32_t* argmax) {
  for (int64_t plane = 0; plane < w.planes; ++plane, x += w.height * w.width * w.block) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, y += w.block) {
        for (int64_t lane = 0; lane < w.block; ++lane) {
          int32_t where = static_cast<int32_t>(w.row_begin[i] * w.width + w.col_begin[j]);
          float best = x[where * w.block + lane];
          for (int64_t r = w.row_begin[i]; r < w.row_end[i]; ++r) {
            for (int64_t c = w.col_begin[j]; c < w.col_end[j]; ++c) {
              const float value = x[(r * w.width + c) * w.block + lane];
              if (value > best || value != value) best = value, where = static_cast<int32_t>(r * w.width + c);
            }
          }
          y[lane] = best;
          if (argmax != nullptr) argmax[lane] = where;
        }
        if (argmax != nullptr) argmax += w.block;
      }
    }
  }
}

void max_backward(const PoolWindows& w, const float* dy, const float* y, const int32_t* argmax, float* dx) {
  const int64_t in_plane = w.height * w.width * w.block, out_pixels = w.out_height * w.out_width;
  zero(dx, w.planes * in_plane);
  for (int64_t plane = 0; plane < w.planes; ++plane, dx += in_plane) {
    for (int64_t pixel = 0; pixel < out_pixels; ++pixel) {
      for (int64_t lane = 0; lane < w.block; ++lane) {
        const int64_t i = (plane * out_pixels + pixel) * w.block + lane;
        if (y == nullptr || y[i] > 0) dx[argmax[i] * w.block + lane] += dy[i];
      }
    }
  }
}

void average_forward(const PoolWindows& w, const float* x, float* y) {
  for (int64_t plane = 0; plane < w.planes; ++plane, x += w.height * w.width * w.block) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, y += w.block) {
        const float divisor = w.row_divisor[i] * w.col_divisor[j];
        for (int64_t lane = 0; lane < w.block; ++lane) y[lane] = 0;
        for (int64_t r = w.row_begin[i]; r < w.row_end[i]; ++r)
          for (int64_t c = w.col_begin[j]; c < w.col_end[j]; ++c)
            for (int64_t lane = 0; lane < w.block; ++lane) y[lane] += x[(r * w.width + c) * w.block + lane];
        for (int64_t lane = 0; lane < w.block; ++lane) y[lane] /= divisor;
      }
    }
  }
}

void average_backward(const PoolWindows& w, const float* dy, float* dx) {
  const int64_t in_plane = w.height * w.width * w.block;
  zero(dx, w.planes * in_plane);
  for (int64_t plane = 0; plane < w.planes; ++plane, dx += in_plane) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, dy += w.block) {
        const float divisor = w.row_divisor[i] * w.col_divisor[j];
        for (int64_t r = w.row_begin[i]; r < w.row_end[i]; ++r)
          for (int64_t c = w.col_begin[j]; c < w.col_end[j]; ++c)
            for (int64_t lane = 0; lane < w.block; ++lane) dx[(r * w.width + c) * w.block + lane] += dy[lane] / divisor;
      }
    }
  }
}

}  // namespace

const PoolKernels pool_kernels = {max_forward_2x2, max_backward_2x2, max_forward,
                                  max_backward,    average_forward,  average_backward};

}  // namespace lockstep::LOCKSTEP_ISA
