// Elementwise activations. Those whose derivative follows from the output run in place.
#include <memory>

#include "nn/layers/layers.h"

namespace lockstep {

std::string describe(const LayerSpec& spec) {
  const std::string place = spec.where.empty() ? "" : spec.where + ": ";
  return place + spec.kind + (spec.name.empty() ? "" : " '" + spec.name + "'");
}

namespace {

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const LayerSpec& spec, Activation activation)
      : kind_(spec.kind),
        spec_{.count = 0, .dtype = DType::f32, .kind = activation, .negative_slope = spec.negative_slope} {}
  std::string_view kind() const override { return kind_; }
  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType given, DType /*precision*/) const override {
    return spec_.kind == Activation::relu ? given : DType::f32;
  }

  Binding bind(BindContext& context) override {
    spec_.count = context.inputs[0].shape.numel();
    spec_.dtype = context.inputs[0].dtype;
    plan_ = context.backend.plan_activation(spec_);
    reads_output_ =
        spec_.kind == Activation::relu || spec_.kind == Activation::tanh || spec_.kind == Activation::sigmoid;
    Binding binding{.output = context.inputs[0]};
    binding.backward_reads_input = !reads_output_;
    binding.backward_reads_output = reads_output_;
    binding.in_place = reads_output_;
    return binding;
  }
  void forward(const Io& io) override { plan_->forward(io.x[0], io.y); }
  void backward(const Io& io) override {
    if (io.dx[0] == nullptr) return;
    plan_->backward(reads_output_ ? nullptr : io.x[0], io.y, io.dy, io.dx[0]);
  }

 private:
  std::string kind_;
  ActivationSpec spec_;
  bool reads_output_ = false;
  std::unique_ptr<ActivationPlan> plan_;
};

}  // namespace

LayerPtr make_relu(const LayerSpec& spec) { return std::make_unique<ActivationLayer>(spec, Activation::relu); }
LayerPtr make_leaky_relu(const LayerSpec& spec) {
  return std::make_unique<ActivationLayer>(spec, Activation::leaky_relu);
}
LayerPtr make_gelu(const LayerSpec& spec) {
  return std::make_unique<ActivationLayer>(spec, spec.tanh_approximation ? Activation::gelu_tanh : Activation::gelu);
}
LayerPtr make_tanh(const LayerSpec& spec) { return std::make_unique<ActivationLayer>(spec, Activation::tanh); }
LayerPtr make_sigmoid(const LayerSpec& spec) { return std::make_unique<ActivationLayer>(spec, Activation::sigmoid); }

}  // namespace lockstep
