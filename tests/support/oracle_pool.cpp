// Pooling by definition: every output looks at its padded window again.
#include <algorithm>
#include <cmath>

#include "support/oracle.h"

namespace lockstep::oracle {

int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
  // Count the windows: each starts `stride` after the one before, from -padding on.
  int64_t count = 0;
  for (int64_t start = -padding;; start += stride) {
    const bool fits = start + kernel <= size + padding;
    // ceil_mode also takes a last window that hangs over the end, if it starts inside the input or its left padding.
    const bool hangs_over = ceil_mode && start < size && (start - stride) + kernel < size + padding;
    if (!fits && !hangs_over) return count;
    ++count;
  }
}

std::array<int64_t, 2> pooled_shape(const Pool2dSpec& spec) {
  if (spec.adaptive) return spec.out_size;
  const Shape& in = spec.input.shape;
  const auto span = [&](size_t axis) { return (spec.kernel[axis] - 1) * spec.dilation[axis] + 1; };
  return {pooled_size(in[2], span(0), spec.stride[0], spec.padding[0], spec.ceil_mode),
          pooled_size(in[3], span(1), spec.stride[1], spec.padding[1], spec.ceil_mode)};
}

namespace {

struct Interval {
  int64_t begin, end, padded_length;  // clipped to the input; length within the padded input
  int64_t step = 1;                   // from one pixel of the window to the next
};

Interval window(const Pool2dSpec& spec, size_t axis, int64_t index) {
  const int64_t size = spec.input.shape[2 + static_cast<int>(axis)];
  if (spec.adaptive) {
    const double ratio = static_cast<double>(size) / static_cast<double>(spec.out_size[axis]);
    const auto begin = static_cast<int64_t>(std::floor(static_cast<double>(index) * ratio + 1e-9));
    const auto end = static_cast<int64_t>(std::ceil(static_cast<double>(index + 1) * ratio - 1e-9));
    return {begin, end, end - begin};
  }
  const int64_t start = index * spec.stride[axis] - spec.padding[axis], step = spec.dilation[axis];
  const int64_t stop = std::min(start + (spec.kernel[axis] - 1) * step + 1, size + spec.padding[axis]);
  int64_t begin = start;
  while (begin < 0) begin += step;
  return {begin, std::min(stop, size), stop - start, step};
}

// visit(output index, plane offset, row window, column window)
template <class Visit>
void for_each_output(const Pool2dSpec& spec, const Visit& visit) {
  const Shape& in = spec.input.shape;
  const auto [height, width] = pooled_shape(spec);
  size_t out = 0;
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x, ++out)
        visit(out, plane * in[2] * in[3], window(spec, 0, y), window(spec, 1, x));
}

size_t first_maximum(In x, int64_t plane, int64_t width, const Interval& rows, const Interval& cols) {
  auto best = static_cast<size_t>(plane + rows.begin * width + cols.begin);
  for (int64_t r = rows.begin; r < rows.end; r += rows.step)
    for (int64_t c = cols.begin; c < cols.end; c += cols.step) {
      const auto at = static_cast<size_t>(plane + r * width + c);
      if (x[at] > x[best] || std::isnan(x[at])) best = at;
    }
  return best;
}

double divisor(const Pool2dSpec& spec, const Interval& rows, const Interval& cols) {
  const bool exclude = spec.kind == Pool2dSpec::Kind::average_exclude_padding;
  return static_cast<double>(exclude ? (rows.end - rows.begin) * (cols.end - cols.begin)
                                     : rows.padded_length * cols.padded_length);
}

}  // namespace

Values pool2d(const Pool2dSpec& spec, In x) {
  const auto [height, width] = pooled_shape(spec);
  const int64_t in_width = spec.input.shape[3];
  Values y(static_cast<size_t>(spec.input.shape[0] * spec.input.shape[1] * height * width));
  for_each_output(spec, [&](size_t out, int64_t plane, const Interval& rows, const Interval& cols) {
    if (spec.kind == Pool2dSpec::Kind::max) {
      y[out] = x[first_maximum(x, plane, in_width, rows, cols)];
      return;
    }
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = cols.begin; c < cols.end; ++c) y[out] += x[static_cast<size_t>(plane + r * in_width + c)];
    y[out] /= divisor(spec, rows, cols);
  });
  return y;
}

Values pool2d_backward(const Pool2dSpec& spec, In x, In dy) {
  const int64_t in_width = spec.input.shape[3];
  Values dx(x.size());
  for_each_output(spec, [&](size_t out, int64_t plane, const Interval& rows, const Interval& cols) {
    if (spec.kind == Pool2dSpec::Kind::max) {
      dx[first_maximum(x, plane, in_width, rows, cols)] += dy[out];
      return;
    }
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = cols.begin; c < cols.end; ++c)
        dx[static_cast<size_t>(plane + r * in_width + c)] += dy[out] / divisor(spec, rows, cols);
  });
  return dx;
}

}  // namespace lockstep::oracle
