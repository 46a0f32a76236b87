// Dropout. Its own stream is a function of (step stream, layer, element), so masks never depend on threads or timing;
// with torch_stream the masks are drawn in canonical element order from PyTorch's sequential generator instead.
#include <memory>
#include <vector>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const LayerSpec& spec, uint64_t layer_id)
      : where_(describe(spec)), p_(spec.p), torch_stream_(spec.torch_stream), layer_id_(layer_id) {
    if (!(p_ >= 0 && p_ <= 1)) throw_error("{}: p must be from 0 to 1, found {}", where_, p_);
  }
  std::string_view kind() const override { return "dropout"; }
  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }
  // PyTorch draws in canonical order, so its stream needs canonical memory.
  bool accepts_blocked() const override { return !torch_stream_; }
  DType input_type(DType given, DType /*precision*/) const override { return given; }

  Binding bind(BindContext& context) override {
    input_ = context.inputs[0];
    backend_ = &context.backend;
    Binding binding{.output = input_};
    active_ = context.phase == Phase::training && p_ > 0;  // otherwise the identity, and nothing is drawn
    if (active_) {
      plan_ = context.backend.plan_dropout({.count = input_.shape.numel(), .dtype = input_.dtype, .p = p_});
      binding.saved_bytes = plan_->saved_bytes();
      binding.workspace_bytes = plan_->workspace_bytes();
      if (torch_stream_ && !backend_->memory().host()) mask_.resize(count());
    }
    binding.backward_reads_input = false;
    binding.alias = !active_;
    binding.in_place = true;
    return binding;
  }

  void forward(const Io& io) override {
    if (!active_) {
      if (io.y != io.x[0]) backend_->copy(input_.dtype, count(), io.x[0], io.y);
      return;
    }
    if (io.stream == nullptr) throw_error("{}: no random stream was given for this step", where_);
    if (!torch_stream_ || p_ == 1) {
      plan_->forward(io.x[0], io.y, {io.stream->key, layer_id_}, io.saved);
      return;
    }
    if (io.stream->torch == nullptr) throw_error("{}: PyTorch's generator was asked for but is not running", where_);
    auto* keep = static_cast<uint8_t*>(io.saved);
    io.stream->torch->bernoulli({mask_.empty() ? keep : mask_.data(), count()}, 1 - p_);
    if (!mask_.empty()) backend_->memory().upload(keep, mask_.data(), mask_.size());
    plan_->forward_with_mask(io.x[0], io.y, keep, io.saved);
  }

  void backward(const Io& io) override {
    if (io.dx[0] == nullptr) return;
    if (active_)
      plan_->backward(io.dy, io.dx[0], io.saved);
    else if (io.dx[0] != io.dy)
      backend_->copy(input_.dtype, count(), io.dy, io.dx[0]);
  }

 private:
  size_t count() const { return static_cast<size_t>(input_.shape.numel()); }
  std::string where_;
  double p_;
  bool torch_stream_, active_ = false;
  uint64_t layer_id_;
  TensorDesc input_;
  Backend* backend_ = nullptr;
  std::unique_ptr<DropoutPlan> plan_;
  std::vector<uint8_t> mask_;  // PyTorch's, on its way to a device
};

}  // namespace

LayerPtr make_dropout(const LayerSpec& spec, uint64_t layer_id) {
  return std::make_unique<DropoutLayer>(spec, layer_id);
}

}  // namespace lockstep
