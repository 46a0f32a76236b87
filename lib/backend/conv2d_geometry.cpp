#include "backend/conv2d_geometry.h"

#include "core/error.h"

namespace lockstep {

void check_conv2d(const Conv2dSpec& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 4) throw_error("conv2d: expected an input [N, C, H, W], found {}", in.str());
  if (spec.groups < 1 || in[1] % spec.groups != 0 || spec.out_channels < 1 || spec.out_channels % spec.groups != 0)
    throw_error("conv2d: {} groups don't divide {} input and {} output channels", spec.groups, in[1],
                spec.out_channels);
  if (spec.activation != Activation::none && spec.activation != Activation::relu)
    throw_error("conv2d: only relu can be fused");
  for (size_t axis = 0; axis < 2; ++axis)
    if (spec.kernel[axis] < 1 || spec.stride[axis] < 1 || spec.dilation[axis] < 1 || spec.padding[axis] < 0)
      throw_error("conv2d: kernel, stride and dilation must be positive and padding not negative");
}

Shape conv2d_output(const Conv2dSpec& spec) {
  const Shape& in = spec.input.shape;
  std::array<int64_t, 2> size{};
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t window = spec.dilation[a] * (spec.kernel[a] - 1) + 1, padded = in[2 + axis] + 2 * spec.padding[a];
    if (padded < window) throw_error("conv2d: a kernel spanning {} doesn't fit into {} pixels", window, padded);
    size[a] = (padded - window) / spec.stride[a] + 1;
  }
  return Shape{in[0], spec.out_channels, size[0], size[1]};
}

}  // namespace lockstep
