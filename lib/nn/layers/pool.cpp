// Pooling layers. Maximum pooling can also apply the gradient mask of the ReLU before it: its output is positive
// exactly where that ReLU's winning output is, so the ReLU needs no backward pass of its own.
#include <memory>

#include "backend/pool_geometry.h"
#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

class PoolLayer final : public Layer {
 public:
  PoolLayer(const LayerSpec& spec, Pool2dSpec::Kind pool, bool adaptive) : kind_(spec.kind), where_(describe(spec)) {
    spec_.kind = pool;
    spec_.kernel = spec.kernel;
    spec_.stride = spec.stride;
    spec_.padding = spec.padding;
    spec_.dilation = spec.dilation;
    spec_.ceil_mode = spec.ceil_mode;
    spec_.adaptive = adaptive;
    spec_.out_size = spec.output_size;
  }
  std::string_view kind() const override { return kind_; }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType given, DType /*precision*/) const override { return given; }

  Shape infer(std::span<const Shape> inputs) override {
    if (inputs[0].rank() != 3) throw_error("{}: expected samples [C, H, W], found {}", where_, inputs[0].str());
    spec_.input.shape = inputs[0].with_front(1);
    try {
      return Shape{inputs[0][0], std::ssize(pool_axis(spec_, 0).begin), std::ssize(pool_axis(spec_, 1).begin)};
    } catch (const Error& error) {
      throw_error("{}: {}", where_, error.what());
    }
  }
  bool fuse_input_relu_mask() override { return spec_.mask_relu = spec_.kind == Pool2dSpec::Kind::max; }

  Binding bind(BindContext& context) override {
    spec_.input = context.inputs[0];
    spec_.phase = context.phase;
    plan_ = context.backend.plan_pool2d(spec_);
    Binding binding{.output = plan_->output()};
    binding.saved_bytes = plan_->saved_bytes();
    binding.workspace_bytes = plan_->workspace_bytes();
    binding.backward_reads_input = false;
    binding.backward_reads_output = spec_.mask_relu;
    return binding;
  }
  void forward(const Io& io) override { plan_->forward(io.x[0], io.y, io.saved); }
  void backward(const Io& io) override {
    if (io.dx[0] != nullptr) plan_->backward(io.dy, io.y, io.dx[0], io.saved);
  }

 private:
  std::string kind_, where_;
  Pool2dSpec spec_;
  std::unique_ptr<Pool2dPlan> plan_;
};

using Kind = Pool2dSpec::Kind;

}  // namespace

LayerPtr make_max_pool2d(const LayerSpec& spec) { return std::make_unique<PoolLayer>(spec, Kind::max, false); }
LayerPtr make_avg_pool2d(const LayerSpec& spec) {
  const Kind kind = spec.count_include_pad ? Kind::average : Kind::average_exclude_padding;
  return std::make_unique<PoolLayer>(spec, kind, false);
}
LayerPtr make_adaptive_avg_pool2d(const LayerSpec& spec) {
  return std::make_unique<PoolLayer>(spec, Kind::average, true);
}
LayerPtr make_adaptive_max_pool2d(const LayerSpec& spec) { return std::make_unique<PoolLayer>(spec, Kind::max, true); }

}  // namespace lockstep
