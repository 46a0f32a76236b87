// What linear and conv2d layers share: weight and bias, one plan with the same three passes, and a fused ReLU.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/init.h"
#include "nn/layers/layers.h"

namespace lockstep {

// AffinePlan: LinearPlan or Conv2dPlan. The layer's own class adds infer and make_plan.
template <class AffinePlan>
class AffineLayer : public Layer {
 public:
  explicit AffineLayer(const LayerSpec& spec) : spec_(spec), where_(describe(spec)) {}

  std::string_view kind() const override { return spec_.kind; }
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs{{"weight", weight_shape_}};
    if (spec_.bias) specs.push_back({"bias", Shape{weight_shape_[0]}});
    return specs;
  }
  void initialize(Generator& generator, std::span<const std::span<float>> parameters,
                  std::span<const std::span<float>> /*buffers*/) const override {
    const int64_t fan_in = weight_shape_.without_front().numel();
    init_kaiming_uniform(generator, parameters[0], fan_in);
    if (spec_.bias) init_bias_uniform(generator, parameters[1], fan_in);
  }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType /*given*/, DType precision) const override { return precision; }
  bool fuse_relu() override { return relu_ = true; }
  void gradient_premasked() override { premasked_ = true; }

  Binding bind(BindContext& context) override {
    backend_ = &context.backend;
    input_gradient_ = context.input_gradient;
    weight_gradient_ = context.trains(0);
    bias_gradient_ = spec_.bias && context.trains(1);
    plan_ = make_plan(context, relu_ ? Activation::relu : Activation::none);
    planned();
    if (!context.stored) context.formats[0] = plan_->weight_format();
    output_type_ = plan_->output().dtype;
    output_count_ = static_cast<size_t>(plan_->output().shape.numel());
    return {.output = plan_->output(),
            .workspace_bytes = plan_->workspace_bytes(),
            .saved_bytes = plan_->saved_bytes(),
            .backward_reads_input = weight_gradient_ || input_gradient_reads_input(),
            .backward_reads_output = masks()};
  }
  void forward(const Io& io) override {
    if (io.new_parameters) plan_->take_weights(io.parameters[0], io.workspace);
    run_forward(io);
  }
  void backward(const Io& io) override {
    if (masks()) backend_->relu_mask(output_type_, output_count_, io.y, io.dy, io.dy);
    if (weight_gradient_ || bias_gradient_)
      plan_->backward_weights(io.x[0], io.dy, io.gradients[0], bias_gradient_ ? io.gradients[1] : nullptr,
                              io.accumulate, io.workspace);
    if (input_gradient_) run_backward_data(io);
  }

 protected:
  virtual std::unique_ptr<AffinePlan> make_plan(const BindContext& context, Activation activation) const = 0;
  virtual void planned() {}  // plan_ has just been made
  virtual bool input_gradient_reads_input() const { return false; }
  virtual void run_forward(const Io& io) {
    plan_->forward(io.x[0], io.parameters[0], spec_.bias ? io.parameters[1] : nullptr, io.y, io.workspace);
  }
  virtual void run_backward_data(const Io& io) {
    plan_->backward_data(io.dy, io.parameters[0], io.dx[0], io.workspace);
  }

  LayerSpec spec_;
  std::string where_;
  Shape weight_shape_;  // [out, in...], set by infer
  bool input_gradient_ = true, weight_gradient_ = true, bias_gradient_ = true;
  std::unique_ptr<AffinePlan> plan_;

 private:
  bool masks() const { return relu_ && !premasked_; }

  bool relu_ = false, premasked_ = false;
  Backend* backend_ = nullptr;
  DType output_type_ = DType::f32;
  size_t output_count_ = 0;
};

}  // namespace lockstep
