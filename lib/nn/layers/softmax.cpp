// Softmax over axis 1 of the batch, as nn.Softmax(dim=1).
#include <memory>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

class SoftmaxLayer final : public Layer {
 public:
  explicit SoftmaxLayer(const LayerSpec& spec) : where_(describe(spec)) {}
  std::string_view kind() const override { return "softmax"; }
  Shape infer(std::span<const Shape> inputs) override {
    if (inputs[0].rank() < 1)
      throw_error("{}: expected samples of at least one axis, found {}", where_, inputs[0].str());
    return inputs[0];
  }
  Binding bind(BindContext& context) override {
    const Shape& shape = context.inputs[0].shape;
    const int64_t rows = shape[0], axis = shape[1];
    int64_t inner = 1;
    for (int i = 2; i < shape.rank(); ++i) inner *= shape[i];
    plan_ = context.backend.plan_softmax({.outer = rows, .axis = axis, .inner = inner});
    Binding binding{.output = context.inputs[0]};
    binding.backward_reads_input = false;
    binding.backward_reads_output = true;
    return binding;
  }
  void forward(const Io& io) override { plan_->forward(io.f32_x(), io.f32_y()); }
  void backward(const Io& io) override {
    if (io.dx[0] != nullptr) plan_->backward(io.f32_y(), io.f32_dy(), io.f32_dx());
  }

 private:
  std::string where_;
  std::unique_ptr<SoftmaxPlan> plan_;
};

}  // namespace

LayerPtr make_softmax(const LayerSpec& spec) { return std::make_unique<SoftmaxLayer>(spec); }

}  // namespace lockstep
