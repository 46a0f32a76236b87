// Fully connected layer on flat samples: y = x w^T + b.
#include "core/error.h"
#include "nn/layers/affine.h"

namespace lockstep {
namespace {

class LinearLayer final : public AffineLayer<LinearPlan> {
 public:
  explicit LinearLayer(const LayerSpec& spec) : AffineLayer(spec) {
    if (spec.out < 1) throw_error("{}: expected at least 1 output feature, found {}", where_, spec.out);
  }
  Shape infer(std::span<const Shape> inputs) override {
    if (inputs[0].rank() != 1)
      throw_error("{}: expected flat samples [features], found {}: add flatten before it", where_, inputs[0].str());
    if (inputs[0][0] < 1) throw_error("{}: expected at least 1 input feature", where_);
    weight_shape_ = Shape{spec_.out, inputs[0][0]};
    return Shape{spec_.out};
  }

 private:
  // Behind a flatten the input may still be described as [N, C, H, W], blocked: same numbers, its own order.
  std::unique_ptr<LinearPlan> make_plan(const BindContext& context, Activation activation) const override {
    return context.backend.plan_linear({.input = context.inputs[0],
                                        .out_features = spec_.out,
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

LayerPtr make_linear(const LayerSpec& spec) { return std::make_unique<LinearLayer>(spec); }

}  // namespace lockstep
