// Batch, layer and group normalisation: weight starts at 1, bias at 0, nothing is drawn.
#include <algorithm>
#include <memory>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

// What the three share: an affine pair of one shape, and plans with one signature of backward.
class NormLayer : public Layer {
 public:
  explicit NormLayer(const LayerSpec& spec) : spec_(spec), where_(describe(spec)) {}
  std::string_view kind() const override { return spec_.kind; }
  std::vector<ParameterSpec> parameters() const override {
    if (!spec_.affine) return {};
    return {{"weight", affine_shape_}, {"bias", affine_shape_}};
  }
  void initialize(Generator&, std::span<const std::span<float>> parameters,
                  std::span<const std::span<float>> buffers) const override {
    if (!parameters.empty()) {
      std::ranges::fill(parameters[0], 1.0F);
      std::ranges::fill(parameters[1], 0.0F);
    }
    for (size_t i = 0; i < buffers.size(); ++i) std::ranges::fill(buffers[i], i == 1 ? 1.0F : 0.0F);  // running_var
  }

 protected:
  static Binding describe_plan(const Plan& plan, const TensorDesc& input) {
    return {.output = input, .workspace_bytes = plan.workspace_bytes(), .saved_bytes = plan.saved_bytes()};
  }
  const float* weight(const Io& io) const { return spec_.affine ? io.parameters[0] : nullptr; }
  const float* bias(const Io& io) const { return spec_.affine ? io.parameters[1] : nullptr; }
  template <class NormPlan>
  void run_backward(NormPlan& plan, const Io& io) const {
    plan.backward(io.f32_x(), io.f32_dy(), weight(io), io.f32_dx(), spec_.affine ? io.gradients[0] : nullptr,
                  spec_.affine ? io.gradients[1] : nullptr, io.accumulate, io.saved, io.workspace);
  }

  LayerSpec spec_;
  std::string where_;
  Shape affine_shape_;
};

class BatchNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  Shape infer(std::span<const Shape> inputs) override {
    const int rank = inputs[0].rank();
    if (rank < 1 || rank > 3)
      throw_error("{}: expected samples [C], [C, L] or [C, H, W], found {}", where_, inputs[0].str());
    affine_shape_ = Shape{inputs[0][0]};
    return inputs[0];
  }
  std::vector<ParameterSpec> buffers() const override {
    return {{"running_mean", affine_shape_}, {"running_var", affine_shape_}, {"num_batches_tracked", Shape{}}};
  }
  bool accepts_blocked() const override { return true; }
  Binding bind(BindContext& context) override {
    try {
      plan_ = context.backend.plan_batch_norm({.input = context.inputs[0],
                                               .eps = spec_.eps,
                                               .momentum = spec_.momentum,
                                               .affine = spec_.affine,
                                               .phase = context.phase,
                                               .across_ranks = context.across_ranks});
    } catch (const Error& error) {  // a batch of one value per channel: say which layer
      throw_error("{}: {}", where_, error.what());
    }
    return describe_plan(*plan_, context.inputs[0]);
  }
  void forward(const Io& io) override {
    plan_->forward(io.f32_x(), weight(io), bias(io), io.buffers[0], io.buffers[1], io.buffers[2], io.f32_y(), io.saved);
  }
  void backward(const Io& io) override { run_backward(*plan_, io); }
  void forward_empty(const Io& io) override { plan_->forward_empty(io.buffers[0], io.buffers[1], io.buffers[2]); }
  void backward_empty(const Io&) override { plan_->backward_empty(); }

 private:
  std::unique_ptr<BatchNormPlan> plan_;
};

class LayerNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  Shape infer(std::span<const Shape> inputs) override {
    const std::span<const int64_t> sample = inputs[0].dims();
    affine_shape_ = spec_.normalized_shape.empty() ? inputs[0] : Shape(spec_.normalized_shape);
    const std::span<const int64_t> wanted = affine_shape_.dims();
    if (wanted.empty() || wanted.size() > sample.size() || !std::ranges::equal(sample.last(wanted.size()), wanted))
      throw_error("{}: expected samples that end in {}, found {}", where_, affine_shape_.str(), inputs[0].str());
    return inputs[0];
  }
  Binding bind(BindContext& context) override {
    const int64_t inner = affine_shape_.numel(), all = context.inputs[0].shape.numel();
    plan_ = context.backend.plan_layer_norm(
        {.outer = inner == 0 ? 0 : all / inner, .inner = inner, .eps = spec_.eps, .affine = spec_.affine});
    return describe_plan(*plan_, context.inputs[0]);
  }
  void forward(const Io& io) override { plan_->forward(io.f32_x(), weight(io), bias(io), io.f32_y(), io.saved); }
  void backward(const Io& io) override { run_backward(*plan_, io); }

 private:
  std::unique_ptr<LayerNormPlan> plan_;
};

class GroupNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  Shape infer(std::span<const Shape> inputs) override {
    if (inputs[0].rank() < 1) throw_error("{}: expected samples [C, ...], found {}", where_, inputs[0].str());
    if (spec_.groups < 1 || inputs[0][0] % spec_.groups != 0)
      throw_error("{}: {} channels cannot be split into {} groups", where_, inputs[0][0], spec_.groups);
    affine_shape_ = Shape{inputs[0][0]};
    return inputs[0];
  }
  Binding bind(BindContext& context) override {
    plan_ = context.backend.plan_group_norm(
        {.input = context.inputs[0], .groups = spec_.groups, .eps = spec_.eps, .affine = spec_.affine});
    return describe_plan(*plan_, context.inputs[0]);
  }
  void forward(const Io& io) override { plan_->forward(io.f32_x(), weight(io), bias(io), io.f32_y(), io.saved); }
  void backward(const Io& io) override { run_backward(*plan_, io); }

 private:
  std::unique_ptr<GroupNormPlan> plan_;
};

}  // namespace

LayerPtr make_batch_norm(const LayerSpec& spec) { return std::make_unique<BatchNormLayer>(spec); }
LayerPtr make_layer_norm(const LayerSpec& spec) { return std::make_unique<LayerNormLayer>(spec); }
LayerPtr make_group_norm(const LayerSpec& spec) { return std::make_unique<GroupNormLayer>(spec); }

}  // namespace lockstep
