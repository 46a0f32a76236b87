// Fully connected layer on flat samples: y = x w^T + b. Two of them with nothing but a ReLU between them share the
// first one's backward pass, where the backend has such a LinearPair.
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

  bool pair_with(Layer& producer) override {
    first_ = dynamic_cast<LinearLayer*>(&producer);
    if (first_ != nullptr) first_->has_second_ = true;
    return first_ != nullptr;
  }

 private:
  // Behind a flatten the input may still be described as [N, C, H, W], blocked: same numbers, its own order.
  std::unique_ptr<LinearPlan> make_plan(const BindContext& context, Activation activation) const override {
    const bool gradient = context.input_gradient || weight_gradient_ || bias_gradient_;  // of the output, is wanted
    const bool masks_input = first_ != nullptr && first_->first_of_pair_ && context.input_gradient;
    return context.backend.plan_linear({.input = context.inputs[0],
                                        .out_features = spec_.out,
                                        .bias = spec_.bias,
                                        .activation = activation,
                                        .input_gradient = context.input_gradient,
                                        .weight_gradient = weight_gradient_,
                                        .bias_gradient = bias_gradient_,
                                        .keeps_mask = has_second_ && gradient && context.phase == Phase::training,
                                        .masks_input = masks_input,
                                        .input_bias_gradient = masks_input && first_->leaves_bias_gradient_,
                                        .phase = context.phase,
                                        .stored = context.stored,
                                        .weight_format = context.formats[0]});
  }
  void planned() override {
    LinearPair* pair = plan_->pair();
    first_of_pair_ = pair != nullptr && plan_->saved_bytes() > 0;
    if (!first_of_pair_) return;
    gradient_premasked();
    leaves_bias_gradient_ = bias_gradient_ && pair->leaves_bias_gradient();
    if (leaves_bias_gradient_) bias_gradient_ = false;
  }
  bool second_of_pair() const { return first_ != nullptr && first_->first_of_pair_; }
  bool input_gradient_reads_input() const override {
    return input_gradient_ && second_of_pair() && plan_->pair()->masks_by_output();
  }
  void run_forward(const Io& io) override {
    if (!first_of_pair_) return AffineLayer::run_forward(io);
    const float* bias = spec_.bias ? io.parameters[1] : nullptr;
    plan_->pair()->forward_keeping_mask(io.x[0], io.parameters[0], bias, io.y, io.saved, io.workspace);
  }
  void run_backward_data(const Io& io) override {
    if (!second_of_pair()) return AffineLayer::run_backward_data(io);
    const LinearBefore before{.y = io.x[0],
                              .mask = io.before->saved,
                              .bias_gradient = first_->leaves_bias_gradient_ ? io.before->gradients[1] : nullptr,
                              .accumulate = io.accumulate};
    plan_->pair()->backward_data_masked(before, io.dy, io.parameters[0], io.dx[0], io.workspace);
  }

  LinearLayer* first_ = nullptr;  // whose ReLU only this layer reads
  bool has_second_ = false;       // only one layer, a linear one, reads this one's ReLU
  bool first_of_pair_ = false, leaves_bias_gradient_ = false;
};

}  // namespace

LayerPtr make_linear(const LayerSpec& spec) { return std::make_unique<LinearLayer>(spec); }

}  // namespace lockstep
