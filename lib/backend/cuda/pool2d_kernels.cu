// Pooling. PyTorch's rule for a maximum: a value replaces the candidate if it is greater or NaN, scanning the window in
// row-major order. Backward gathers, so nothing is added by two threads; sums are rounded to the type after each
// addition, as on the CPU.
#include "backend/cuda/pool2d_kernels.h"

#include <type_traits>

#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

// An element of planes of height x width pixels, from its place in a matrix of their rows.
struct Place {
  size_t plane, i, j, lane;
};
constexpr Place place(size_t height, size_t block, size_t row, size_t column) {
  const size_t plane = static_cast<uint32_t>(row) / static_cast<uint32_t>(height);
  const size_t j = block == 1 ? column : static_cast<uint32_t>(column) / static_cast<uint32_t>(block);
  return {plane, row - plane * height, j, column - j * block};
}
constexpr size_t index(const PoolSide& rows, const PoolSide& cols, bool output, const Place& p, size_t block) {
  const size_t height = output ? rows.out : rows.in, width = output ? cols.out : cols.in;
  return ((p.plane * height + p.i) * width + p.j) * block + p.lane;
}

constexpr uint32_t no_position = UINT32_MAX;

struct Windows {
  PoolGrid g;
  constexpr Place output(size_t row, size_t column) const { return place(g.rows.out, g.block, row, column); }
  constexpr Place input(size_t row, size_t column) const { return place(g.rows.in, g.block, row, column); }
  constexpr size_t output_at(const Place& p) const { return index(g.rows, g.cols, true, p, g.block); }
  constexpr size_t input_at(const Place& p) const { return index(g.rows, g.cols, false, p, g.block); }
  // visit(index in x, position in the window) over the window of an output.
  template <class Visit>
  constexpr void over_window(const Place& p, const Visit& visit) const {
    uint32_t position = 0;
    for (int32_t r = g.rows.begin[p.i]; r < g.rows.end[p.i]; r += g.rows.step)
      for (int32_t c = g.cols.begin[p.j]; c < g.cols.end[p.j]; c += g.cols.step)
        visit(input_at({p.plane, static_cast<size_t>(r), static_cast<size_t>(c), p.lane}), position++);
  }
  // visit(index in y, output) over the windows that an input lies under.
  template <class Visit>
  constexpr void over_outputs(const Place& p, const Visit& visit) const {
    for (int32_t i = g.rows.first[p.i]; i < g.rows.last[p.i]; ++i)
      for (int32_t j = g.cols.first[p.j]; j < g.cols.last[p.j]; ++j) {
        const Place output{p.plane, static_cast<size_t>(i), static_cast<size_t>(j), p.lane};
        visit(output_at(output), output);
      }
  }
  // Of an input in the window of an output; no position where the input lies in a gap of it.
  constexpr uint32_t position(const Place& input, const Place& output) const {
    const int32_t row = static_cast<int32_t>(input.i) - g.rows.begin[output.i];
    const int32_t column = static_cast<int32_t>(input.j) - g.cols.begin[output.j];
    const int32_t width = g.cols.end[output.j] - g.cols.begin[output.j];
    if (g.rows.step == 1 && g.cols.step == 1) return static_cast<uint32_t>(row * width + column);
    const bool outside =
        row < 0 || column < 0 || input.i >= static_cast<size_t>(g.rows.end[output.i]) || column >= width;
    if (outside || row % g.rows.step != 0 || column % g.cols.step != 0) return no_position;
    return static_cast<uint32_t>(row / g.rows.step * ((width - 1) / g.cols.step + 1) + column / g.cols.step);
  }
  constexpr float divisor(const Place& output) const { return g.rows.divisor[output.i] * g.cols.divisor[output.j]; }
};

template <class T, class Index>
struct Max : Windows {
  const T* x;
  T* y;
  Index* saved;
  Max(const Windows& w, const void* from, void* to, void* positions)
      : Windows(w), x(static_cast<const T*>(from)), y(static_cast<T*>(to)), saved(static_cast<Index*>(positions)) {}
  constexpr void operator()(size_t row, size_t column) const {
    const Place p = output(row, column);
    float best = 0;
    uint32_t where = 0;
    over_window(p, [&](size_t i, uint32_t at) {
      const float value = widen(x[i]);
      if (at > 0 && !(value > best || value != value)) return;
      best = value;
      where = at;
    });
    const size_t to = output_at(p);
    narrow(best, y[to]);
    if (saved != nullptr) saved[to] = static_cast<Index>(where);
  }
};

template <class T, class Index>
struct MaxBackward : Windows {
  const T *dy, *y;
  const Index* saved;
  T* dx;
  MaxBackward(const Windows& w, const void* from, const void* output, const void* positions, void* to)
      : Windows(w),
        dy(static_cast<const T*>(from)),
        y(static_cast<const T*>(output)),
        saved(static_cast<const Index*>(positions)),
        dx(static_cast<T*>(to)) {}
  constexpr void operator()(size_t row, size_t column) const {
    const Place p = input(row, column);
    T sum{};
    over_outputs(p, [&](size_t o, const Place& window) {
      if (saved[o] != position(p, window)) return;
      if (y == nullptr || widen(y[o]) > 0) narrow(widen(sum) + widen(dy[o]), sum);
    });
    dx[input_at(p)] = sum;
  }
};

template <class T>
struct Average : Windows {
  const T* x;
  T* y;
  Average(const Windows& w, const void* from, void* to)
      : Windows(w), x(static_cast<const T*>(from)), y(static_cast<T*>(to)) {}
  constexpr void operator()(size_t row, size_t column) const {
    const Place p = output(row, column);
    float sum = 0;
    over_window(p, [&](size_t i, uint32_t) { sum += widen(x[i]); });
    narrow(sum / divisor(p), y[output_at(p)]);
  }
};

template <class T>
struct AverageBackward : Windows {
  const T* dy;
  T* dx;
  AverageBackward(const Windows& w, const void* from, void* to)
      : Windows(w), dy(static_cast<const T*>(from)), dx(static_cast<T*>(to)) {}
  constexpr void operator()(size_t row, size_t column) const {
    const Place p = input(row, column);
    T sum{};
    over_outputs(p, [&](size_t o, const Place& window) { narrow(widen(sum) + widen(dy[o]) / divisor(window), sum); });
    dx[input_at(p)] = sum;
  }
};

template <class Body>
void over_output(cudaStream_t stream, const Body& body) {
  launch_matrix(stream, body.g.planes * body.g.rows.out, body.g.cols.out * body.g.block, body);
}
template <class Body>
void over_input(cudaStream_t stream, const Body& body) {
  launch_matrix(stream, body.g.planes * body.g.rows.in, body.g.cols.in * body.g.block, body);
}

}  // namespace

void max_pool(cudaStream_t stream, DType type, const PoolGrid& grid, const void* x, void* y, void* saved, bool wide) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if (wide) return over_output(stream, Max<T, uint32_t>({grid}, x, y, saved));
    over_output(stream, Max<T, uint8_t>({grid}, x, y, saved));
  });
}

void max_pool_backward(cudaStream_t stream, DType type, const PoolGrid& grid, const void* dy, const void* y,
                       const void* saved, bool wide, void* dx) {
  by_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if (wide) return over_input(stream, MaxBackward<T, uint32_t>({grid}, dy, y, saved, dx));
    over_input(stream, MaxBackward<T, uint8_t>({grid}, dy, y, saved, dx));
  });
}

void average_pool(cudaStream_t stream, DType type, const PoolGrid& grid, const void* x, void* y) {
  by_type(type, [&](auto* null) { over_output(stream, Average<std::remove_pointer_t<decltype(null)>>({grid}, x, y)); });
}

void average_pool_backward(cudaStream_t stream, DType type, const PoolGrid& grid, const void* dy, void* dx) {
  by_type(type, [&](auto* null) {
    over_input(stream, AverageBackward<std::remove_pointer_t<decltype(null)>>({grid}, dy, dx));
  });
}

}  // namespace lockstep::cuda
