#include "nn/layers/reorder.h"

namespace lockstep {
namespace {

class Reorder final : public Layer {
 public:
  Reorder(const Shape& sample, int64_t channel_block, DType type)
      : sample_(sample), channel_block_(channel_block), type_(type) {}
  std::string_view kind() const override { return "reorder"; }
  Shape infer(std::span<const Shape>) override { return sample_; }
  bool accepts_blocked() const override { return true; }
  DType input_type(DType given, DType /*precision*/) const override { return given; }

  Binding bind(BindContext& context) override {
    backend_ = &context.backend;
    from_ = context.inputs[0];
    to_ = from_;
    to_.channel_block = channel_block_;
    to_.dtype = type_;
    TensorDesc output = to_;
    if (channel_block_ == 1) output.shape = sample_.with_front(from_.shape[0]);
    return {.output = output, .backward_reads_input = false};
  }
  void forward(const Io& io) override { backend_->reorder(from_, io.x[0], to_, io.y); }
  void backward(const Io& io) override {
    if (io.dx[0] != nullptr) backend_->reorder(to_, io.dy, from_, io.dx[0]);
  }

 private:
  Shape sample_;
  int64_t channel_block_;
  DType type_;
  Backend* backend_ = nullptr;
  TensorDesc from_, to_;
};

}  // namespace

LayerPtr make_reorder(const Shape& sample, int64_t channel_block, DType type) {
  return std::make_unique<Reorder>(sample, channel_block, type);
}

}  // namespace lockstep
