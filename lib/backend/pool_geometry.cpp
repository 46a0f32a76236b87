#include "backend/pool_geometry.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

// Start floor(i * in / out), end ceil((i + 1) * in / out).
static PoolAxis adaptive_axis(int64_t in, int64_t out) {
  PoolAxis axis;
  for (int64_t i = 0; i < out; ++i) {
    axis.begin.push_back(static_cast<int32_t>(i * in / out));
    axis.end.push_back(static_cast<int32_t>(((i + 1) * in + out - 1) / out));
    axis.divisor.push_back(static_cast<float>(axis.end.back() - axis.begin.back()));
  }
  return axis;
}

static int64_t output_size(int64_t in, int64_t span, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t room = in + 2 * padding - span + (ceil_mode ? stride - 1 : 0);
  if (room < 0) return 0;
  int64_t out = room / stride + 1;
  // The last window of ceil_mode must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

int64_t pool_span(const Pool2dSpec& spec, int axis) {
  const auto a = static_cast<size_t>(axis);
  return (spec.kernel[a] - 1) * spec.dilation[a] + 1;
}

PoolAxis pool_axis(const Pool2dSpec& spec, int axis_index) {
  const auto a = static_cast<size_t>(axis_index);
  const int64_t in = spec.input.shape[2 + axis_index];
  if (in > INT32_MAX) throw_error("pooling: an axis of {} elements is too long", in);
  if (spec.adaptive) {
    if (in < 1 || spec.out_size[a] < 1 || spec.out_size[a] > INT32_MAX)
      throw_error("adaptive pooling: cannot pool {} elements to {}", in, spec.out_size[a]);
    return adaptive_axis(in, spec.out_size[a]);
  }
  const int64_t kernel = spec.kernel[a], stride = spec.stride[a], padding = spec.padding[a], step = spec.dilation[a];
  if (kernel < 1 || stride < 1 || padding < 0 || kernel > INT32_MAX || stride > INT32_MAX)
    throw_error("pooling: kernel {}, stride {}, padding {}: expected positive kernel and stride", kernel, stride,
                padding);
  if (step < 1 || step > INT32_MAX || (step > 1 && spec.kind != Pool2dSpec::Kind::max))
    throw_error("pooling: dilation {}: expected 1, or more of a maximum", step);
  if (padding > kernel / 2) throw_error("pooling: padding {} must be at most half of kernel {}", padding, kernel);
  const int64_t span = pool_span(spec, axis_index), out = output_size(in, span, stride, padding, spec.ceil_mode);
  if (out < 1 && step > 1)
    throw_error("pooling: kernel {} with dilation {} spans {}: larger than the input of {} padded by {}", kernel, step,
                span, in, padding);
  if (out < 1) throw_error("pooling: kernel {} is larger than the input of {} padded by {}", kernel, in, padding);
  PoolAxis axis;
  axis.step = static_cast<int32_t>(step);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t start = i * stride - padding, padded_end = std::min(start + span, in + padding);
    // The first pixel of the window that lies in the input.
    const int64_t begin = start < 0 ? start + (-start + step - 1) / step * step : start;
    if (begin >= in)
      throw_error(
          "pooling: dilation {}: the pixels of window {} all lie in the padding: expected one in the input of {}", step,
          i, in);
    const int64_t last =
        std::min(begin + (padded_end - 1 - begin) / step * step, begin + (in - 1 - begin) / step * step);
    const int64_t end = last + 1;
    axis.begin.push_back(static_cast<int32_t>(begin));
    axis.end.push_back(static_cast<int32_t>(end));
    const bool exclude = spec.kind == Pool2dSpec::Kind::average_exclude_padding;
    axis.divisor.push_back(static_cast<float>(exclude ? end - begin : padded_end - start));
  }
  return axis;
}

}  // namespace lockstep
