// Two-dimensional convolution as PyTorch's Conv2d: cross-correlation, zero padding, stride, dilation, groups.
#include "core/error.h"
#include "nn/layers/affine.h"

namespace lockstep {
namespace {

class Conv2dLayer final : public AffineLayer<Conv2dPlan> {
 public:
  explicit Conv2dLayer(const LayerSpec& spec) : AffineLayer(spec) {
    if (spec.out < 1) throw_error("{}: expected at least 1 output channel, found {}", where_, spec.out);
    if (spec.groups < 1 || spec.out % spec.groups != 0)
      throw_error("{}: {} output channels cannot be split into {} groups", where_, spec.out, spec.groups);
    for (size_t axis = 0; axis < 2; ++axis) {
      if (spec.kernel[axis] < 1 || spec.stride[axis] < 1 || spec.dilation[axis] < 1)
        throw_error("{}: kernel, stride and dilation must be at least 1", where_);
      if (spec.padding[axis] < 0) throw_error("{}: padding must not be negative", where_);
    }
  }
  Shape infer(std::span<const Shape> inputs) override {
    const Shape& in = inputs[0];
    if (in.rank() != 3) throw_error("{}: expected samples [C, H, W], found {}", where_, in.str());
    if (in[0] < 1 || in[0] % spec_.groups != 0)
      throw_error("{}: {} input channels cannot be split into {} groups", where_, in[0], spec_.groups);
    weight_shape_ = Shape{spec_.out, in[0] / spec_.groups, spec_.kernel[0], spec_.kernel[1]};
    return Shape{spec_.out, out_size(in, 0), out_size(in, 1)};
  }

 private:
  int64_t out_size(const Shape& in, size_t axis) const {
    const int64_t window = spec_.dilation[axis] * (spec_.kernel[axis] - 1) + 1;
    const int64_t padded = in[static_cast<int>(axis) + 1] + 2 * spec_.padding[axis];
    if (padded < window)
      throw_error("{}: a kernel that spans {} does not fit into {} with padding {}: a smaller kernel, or more padding",
                  where_, window, in.str(), spec_.padding[axis]);
    return (padded - window) / spec_.stride[axis] + 1;
  }
  std::unique_ptr<Conv2dPlan> make_plan(const BindContext& context, Activation activation) const override {
    return context.backend.plan_conv2d({.input = context.inputs[0],
                                        .out_channels = spec_.out,
                                        .kernel = spec_.kernel,
                                        .stride = spec_.stride,
                                        .padding = spec_.padding,
                                        .dilation = spec_.dilation,
                                        .groups = spec_.groups,
                                        .bias = spec_.bias,
                                        .activation = activation,
                                        .input_gradient = context.input_gradient,
                                        .weight_gradient = context.trains(0),
                                        .phase = context.phase,
                                        .stored = context.stored,
                                        .weight_format = context.formats[0]});
  }
};

}  // namespace

LayerPtr make_conv2d(const LayerSpec& spec) { return std::make_unique<Conv2dLayer>(spec); }

}  // namespace lockstep
