// Layers that move or join tensors without maths of their own: flatten and residual addition.
#include <memory>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

// [N, C, H, W] -> [N, C * H * W] without touching memory. A blocked input stays as it is: the next linear layer takes
// the 4-D description and reads it in canonical order.
class FlattenLayer final : public Layer {
 public:
  std::string_view kind() const override { return "flatten"; }
  Shape infer(std::span<const Shape> inputs) override { return Shape{inputs[0].numel()}; }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType given, DType /*precision*/) const override { return given; }
  Binding bind(BindContext& context) override {
    backend_ = &context.backend;
    const TensorDesc& input = context.inputs[0];
    type_ = input.dtype;
    count_ = static_cast<size_t>(input.shape.numel());
    Binding binding{.output = input};
    if (input.channel_block == 1) binding.output.shape = Shape{input.shape[0], input.shape.without_front().numel()};
    binding.backward_reads_input = false;
    binding.alias = true;
    binding.in_place = true;
    return binding;
  }
  void forward(const Io& io) override {
    if (io.y != io.x[0]) backend_->copy(type_, count_, io.x[0], io.y);
  }
  void backward(const Io& io) override {
    if (io.dx[0] != nullptr && io.dx[0] != io.dy) backend_->copy(type_, count_, io.dy, io.dx[0]);
  }

 private:
  Backend* backend_ = nullptr;
  DType type_ = DType::f32;
  size_t count_ = 0;
};

// The sum of two tensors of one shape. Where their layouts or types differ, the second follows the first.
class AddLayer final : public Layer {
 public:
  explicit AddLayer(const LayerSpec& spec) : where_(describe(spec)) {}
  std::string_view kind() const override { return "add"; }
  Shape infer(std::span<const Shape> inputs) override {
    if (inputs.size() != 2) throw_error("{}: expected two inputs, found {}", where_, inputs.size());
    if (inputs[0] != inputs[1])
      throw_error(
          "{}: expected two tensors of one shape, found {} and {}; a conv2d of kernel 1 on one way brings channels and "
          "size together",
          where_, inputs[0].str(), inputs[1].str());
    return inputs[0];
  }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType given, DType /*precision*/) const override { return given; }
  Binding bind(BindContext& context) override {
    backend_ = &context.backend;
    first_ = context.inputs[0];
    second_ = context.inputs[1];
    Binding binding{.output = first_};
    binding.workspace_bytes = first_ == second_ ? 0 : first_.bytes();
    binding.backward_reads_input = false;
    binding.in_place = true;
    return binding;
  }
  void forward(const Io& io) override {
    const void* second = io.x[1];
    if (first_ != second_) {
      backend_->reorder(second_, second, first_, io.workspace);
      second = io.workspace;
    }
    backend_->add(first_.dtype, static_cast<size_t>(first_.shape.numel()), io.x[0], second, io.y);
  }
  void backward(const Io& io) override {
    if (io.dx[1] != nullptr && io.dx[1] != io.dy) backend_->reorder(first_, io.dy, second_, io.dx[1]);
    if (io.dx[0] != nullptr && io.dx[0] != io.dy)
      backend_->copy(first_.dtype, static_cast<size_t>(first_.shape.numel()), io.dy, io.dx[0]);
  }

 private:
  std::string where_;
  Backend* backend_ = nullptr;
  TensorDesc first_, second_;
};

}  // namespace

LayerPtr make_flatten(const LayerSpec&) { return std::make_unique<FlattenLayer>(); }
LayerPtr make_add(const LayerSpec& spec) { return std::make_unique<AddLayer>(spec); }

}  // namespace lockstep
