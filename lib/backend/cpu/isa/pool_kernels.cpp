// Pooling kernels. PyTorch's rule for a maximum: a value replaces the candidate if it is greater or NaN, scanning the
// window in row-major order; so the first of equal maxima wins, and a NaN is never lost.
#include "backend/cpu/isa/pool_kernels.h"

#include "core/half.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// A blocked pixel is worked on in vectors of 8 channels: wider ones are taken apart badly where the machine lacks them.
constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(kLanes), aligned(1), may_alias));

// By reference: vectors as arguments or results have no calling convention without AVX.
inline void load(const float* from, Floats& to) { to = *reinterpret_cast<const Floats*>(from); }
inline void load(const Bf16* from, Floats& to) {
  to = reinterpret_cast<Floats>(__builtin_convertvector(*reinterpret_cast<const Shorts*>(from), Words) << 16);
}
inline void load(const F16* from, Floats& to) {
  for (int i = 0; i < kLanes; ++i) to[i] = widen(from[i]);
}
// Of numbers that were loaded from the same type, so that nothing is rounded.
inline void store(const Floats& x, float* to) { *reinterpret_cast<Floats*>(to) = x; }
inline void store(const Floats& x, Bf16* to) {
  *reinterpret_cast<Shorts*>(to) = __builtin_convertvector(reinterpret_cast<Words>(x) >> 16, Shorts);
}
inline void store(const Floats& x, F16* to) {
  for (int i = 0; i < kLanes; ++i) narrow(x[i], to[i]);
}

// Block 0: known at run time only.
template <int Block, class T>
void max_row_2x2(int64_t given_block, const T* upper, const T* lower, int64_t out_width, T* y, uint8_t* argmax) {
  const int64_t block = Block > 0 ? Block : given_block;
  for (int64_t i = 0; i < out_width; ++i, upper += 2 * block, lower += 2 * block) {
    for (int64_t lane = 0; lane < block; lane += kLanes, y += kLanes) {
      const T* const corner[4] = {upper + lane, upper + block + lane, lower + lane, lower + block + lane};
      Floats best, value;
      load(corner[0], best);
      Ints where = {};
      for (int k = 1; k < 4; ++k) {
        load(corner[k], value);
        const Ints take = (value > best) | (value != value);
        best = take ? value : best;
        where = (take & k) | (~take & where);
      }
      store(best, y);
      if (argmax == nullptr) continue;
      *reinterpret_cast<Bytes*>(argmax) = __builtin_convertvector(where, Bytes);
      argmax += kLanes;
    }
  }
}

template <class T>
void max_row_2x2_plain(const T* upper, const T* lower, int64_t out_width, T* y, uint8_t* argmax) {
  for (int64_t i = 0; i < out_width; ++i) {
    const float value[4] = {widen(upper[2 * i]), widen(upper[2 * i + 1]), widen(lower[2 * i]), widen(lower[2 * i + 1])};
    float best = value[0];
    int where = 0;
    for (int k = 1; k < 4; ++k) {
      const bool take = (value[k] > best) | (value[k] != value[k]);
      best = take ? value[k] : best;
      where = take ? k : where;
    }
    narrow(best, y[i]);
    if (argmax != nullptr) argmax[i] = static_cast<uint8_t>(where);
  }
}

template <int Block, bool Masked, class T>
void spread_row_2x2(int64_t given_block, const T* dy, const T* y, const uint8_t* argmax, int64_t out_width, T* upper,
                    T* lower) {
  const int64_t block = Block > 0 ? Block : given_block;
  for (int64_t i = 0; i < out_width; ++i, upper += 2 * block, lower += 2 * block) {
    for (int64_t lane = 0; lane < block; lane += kLanes, dy += kLanes, argmax += kLanes) {
      T* const corner[4] = {upper + lane, upper + block + lane, lower + lane, lower + block + lane};
      Floats gradient;
      load(dy, gradient);
      if constexpr (Masked) {
        Floats output;
        load(y, output);
        gradient = output > 0 ? gradient : Floats{};
        y += kLanes;
      }
      const Ints where = __builtin_convertvector(*reinterpret_cast<const Bytes*>(argmax), Ints);
      for (int k = 0; k < 4; ++k) store((where == k) ? gradient : Floats{}, corner[k]);
    }
  }
}

template <bool Masked, class T>
void spread_row_2x2_plain(const T* dy, const T* y, const uint8_t* argmax, int64_t out_width, T* upper, T* lower) {
  for (int64_t i = 0; i < out_width; ++i) {
    const T gradient = Masked && !(widen(y[i]) > 0) ? T{} : dy[i];
    upper[2 * i] = argmax[i] == 0 ? gradient : T{};
    upper[2 * i + 1] = argmax[i] == 1 ? gradient : T{};
    lower[2 * i] = argmax[i] == 2 ? gradient : T{};
    lower[2 * i + 1] = argmax[i] == 3 ? gradient : T{};
  }
}

template <class T>
void zero(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = T{};
}

template <class T>
void max_forward_2x2(const PoolWindows& w, const void* from, void* to, uint8_t* argmax) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  const int64_t in_row = w.width * w.block, out_row = w.out_width * w.block;
  for (int64_t plane = 0; plane < w.planes; ++plane) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      const T *upper = x + (plane * w.height + 2 * i) * in_row, *lower = upper + in_row;
      const int64_t out = (plane * w.out_height + i) * out_row;
      uint8_t* row_argmax = argmax == nullptr ? nullptr : argmax + out;
      if (w.block == 16)
        max_row_2x2<16>(16, upper, lower, w.out_width, y + out, row_argmax);
      else if (w.block == 8)
        max_row_2x2<8>(8, upper, lower, w.out_width, y + out, row_argmax);
      else if (w.block > 1)
        max_row_2x2<0>(w.block, upper, lower, w.out_width, y + out, row_argmax);
      else
        max_row_2x2_plain(upper, lower, w.out_width, y + out, row_argmax);
    }
  }
}

template <bool Masked, class T>
void spread_2x2(const PoolWindows& w, const T* dy, const T* y, const uint8_t* argmax, T* dx) {
  const int64_t in_row = w.width * w.block, out_row = w.out_width * w.block;
  for (int64_t plane = 0; plane < w.planes; ++plane) {
    T* const plane_dx = dx + plane * w.height * in_row;
    for (int64_t i = 0; i < w.out_height; ++i) {
      T *upper = plane_dx + 2 * i * in_row, *lower = upper + in_row;
      const int64_t out = (plane * w.out_height + i) * out_row;
      const T* row_y = Masked ? y + out : nullptr;
      if (w.block == 16)
        spread_row_2x2<16, Masked>(16, dy + out, row_y, argmax + out, w.out_width, upper, lower);
      else if (w.block == 8)
        spread_row_2x2<8, Masked>(8, dy + out, row_y, argmax + out, w.out_width, upper, lower);
      else if (w.block > 1)
        spread_row_2x2<0, Masked>(w.block, dy + out, row_y, argmax + out, w.out_width, upper, lower);
      else
        spread_row_2x2_plain<Masked>(dy + out, row_y, argmax + out, w.out_width, upper, lower);
      // An odd last column and row lie under no window.
      zero(upper + 2 * out_row, in_row - 2 * out_row);
      zero(lower + 2 * out_row, in_row - 2 * out_row);
    }
    zero(plane_dx + 2 * w.out_height * in_row, (w.height - 2 * w.out_height) * in_row);
  }
}

template <class T>
void max_backward_2x2(const PoolWindows& w, const void* from, const void* output, const uint8_t* argmax, void* to) {
  const T *dy = static_cast<const T*>(from), *y = static_cast<const T*>(output);
  T* dx = static_cast<T*>(to);
  if (y != nullptr)
    spread_2x2<true>(w, dy, y, argmax, dx);
  else
    spread_2x2<false>(w, dy, y, argmax, dx);
}

template <class T>
void max_forward(const PoolWindows& w, const void* from, void* to, int32_t* argmax) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t plane = 0; plane < w.planes; ++plane, x += w.height * w.width * w.block) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, y += w.block) {
        for (int64_t lane = 0; lane < w.block; ++lane) {
          int32_t where = static_cast<int32_t>(w.row_begin[i] * w.width + w.col_begin[j]);
          float best = widen(x[where * w.block + lane]);
          for (int64_t r = w.row_begin[i]; r < w.row_end[i]; r += w.row_step) {
            for (int64_t c = w.col_begin[j]; c < w.col_end[j]; c += w.col_step) {
              const float value = widen(x[(r * w.width + c) * w.block + lane]);
              if (value > best || value != value) best = value, where = static_cast<int32_t>(r * w.width + c);
            }
          }
          narrow(best, y[lane]);
          if (argmax != nullptr) argmax[lane] = where;
        }
        if (argmax != nullptr) argmax += w.block;
      }
    }
  }
}

template <class T>
void add_to(T& sum, float x) {
  narrow(widen(sum) + x, sum);
}

template <class T>
void max_backward(const PoolWindows& w, const void* from, const void* output, const int32_t* argmax, void* to) {
  const T *dy = static_cast<const T*>(from), *y = static_cast<const T*>(output);
  T* dx = static_cast<T*>(to);
  const int64_t in_plane = w.height * w.width * w.block, out_pixels = w.out_height * w.out_width;
  zero(dx, w.planes * in_plane);
  for (int64_t plane = 0; plane < w.planes; ++plane, dx += in_plane) {
    for (int64_t pixel = 0; pixel < out_pixels; ++pixel) {
      for (int64_t lane = 0; lane < w.block; ++lane) {
        const int64_t i = (plane * out_pixels + pixel) * w.block + lane;
        if (y == nullptr || widen(y[i]) > 0) add_to(dx[argmax[i] * w.block + lane], widen(dy[i]));
      }
    }
  }
}

template <class T>
void average_forward(const PoolWindows& w, const void* from, void* to) {
  constexpr int64_t kChunk = 16;  // channels summed at a time
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t plane = 0; plane < w.planes; ++plane, x += w.height * w.width * w.block) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, y += w.block) {
        const float divisor = w.row_divisor[i] * w.col_divisor[j];
        for (int64_t first = 0; first < w.block; first += kChunk) {
          const int64_t lanes = w.block - first < kChunk ? w.block - first : kChunk;
          float sum[kChunk] = {};
          for (int64_t r = w.row_begin[i]; r < w.row_end[i]; ++r)
            for (int64_t c = w.col_begin[j]; c < w.col_end[j]; ++c)
              for (int64_t lane = 0; lane < lanes; ++lane)
                sum[lane] += widen(x[(r * w.width + c) * w.block + first + lane]);
          for (int64_t lane = 0; lane < lanes; ++lane) narrow(sum[lane] / divisor, y[first + lane]);
        }
      }
    }
  }
}

template <class T>
void average_backward(const PoolWindows& w, const void* from, void* to) {
  const T* dy = static_cast<const T*>(from);
  T* dx = static_cast<T*>(to);
  const int64_t in_plane = w.height * w.width * w.block;
  zero(dx, w.planes * in_plane);
  for (int64_t plane = 0; plane < w.planes; ++plane, dx += in_plane) {
    for (int64_t i = 0; i < w.out_height; ++i) {
      for (int64_t j = 0; j < w.out_width; ++j, dy += w.block) {
        const float divisor = w.row_divisor[i] * w.col_divisor[j];
        for (int64_t r = w.row_begin[i]; r < w.row_end[i]; ++r)
          for (int64_t c = w.col_begin[j]; c < w.col_end[j]; ++c)
            for (int64_t lane = 0; lane < w.block; ++lane)
              add_to(dx[(r * w.width + c) * w.block + lane], widen(dy[lane]) / divisor);
      }
    }
  }
}

template <class T>
constexpr PoolKernels kernels_of{max_forward_2x2<T>, max_backward_2x2<T>, max_forward<T>,
                                 max_backward<T>,    average_forward<T>,  average_backward<T>};

}  // namespace

const PoolKernels pool_kernels[3] = {kernels_of<float>, kernels_of<Bf16>, kernels_of<F16>};

}  // namespace lockstep::LOCKSTEP_ISA
