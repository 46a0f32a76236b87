// LinearPlan by oneDNN's inner product. A flattened [N, C, H, W] input is a matrix whose K = C*H*W columns are in the
// order the activation has in memory; the stored weights follow that order, so no step copies either of them.
#include <array>

#include "backend/cpu/linear.h"
#include "backend/cpu/onednn_affine.h"

namespace lockstep {
namespace {

using namespace onednn;

class OnednnLinear final : public LinearPlan {
 public:
  OnednnLinear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format)
      : batch_(spec.input.shape[0]),
        in_(spec.input.shape.without_front().numel()),
        out_(spec.out_features),
        type_(spec.input.dtype),
        format_(std::move(format)),
        passes_(context_, choose(spec)) {}

  TensorDesc output() const override { return {.shape = Shape{batch_, out_}, .channel_block = 1, .dtype = type_}; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return passes_.workspace_bytes(); }
  void take_weights(const float* w, void* workspace) override { passes_.take_weights(w, workspace); }
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    passes_.forward(x, w, b, y, workspace);
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    passes_.backward_data(dy, w, dx, workspace);
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  AffineChoice choose(const LinearSpec& spec) const;

  int64_t batch_, in_, out_;
  DType type_;
  std::shared_ptr<const LinearWeights> format_;
  Context context_;
  AffinePasses passes_;
};

AffineChoice OnednnLinear::choose(const LinearSpec& spec) const {
  AffineProblem problem;
  problem.x = MemoryDesc(std::array{batch_, in_}, dnnl_ab, type_);
  problem.y = MemoryDesc(std::array{batch_, out_}, dnnl_ab, type_);
  if (spec.bias) problem.bias = MemoryDesc(std::array{out_}, dnnl_a);
  problem.srcs = {problem.x};
  problem.dsts = {problem.y};
  // [in][out] for all three passes. Left to itself the library takes a layout that makes forward a little faster and
  // the weight gradient much slower.
  problem.type = type_;
  problem.stored = problem.any_gradient = MemoryDesc(std::array{out_, in_}, dnnl_ba);
  problem.any_weights = MemoryDesc(std::array{out_, in_}, dnnl_ba, type_);
  problem.backward_weights = spec.phase == Phase::training;
  problem.backward_data = problem.backward_weights && spec.input_gradient;
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  problem.makers = {[&problem, relu, training, this](Pass pass, const MemoryDesc& src, const MemoryDesc& weights,
                                                     const MemoryDesc& dst) {
    const MemoryDesc& read = pass == Pass::backward_weights ? problem.any_weights : weights;
    const PrimitiveDesc forward = inner_product_forward(context_, src, read, problem.bias, dst, training, relu);
    if (pass == Pass::forward || !forward) return forward;
    if (pass == Pass::backward_data) return inner_product_backward_data(context_, src, weights, dst, forward);
    return inner_product_backward_weights(context_, src, weights, problem.bias, dst, forward);
  }};
  return choose_affine(problem);
}

}  // namespace

std::unique_ptr<LinearPlan> make_onednn_linear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format) {
  return std::make_unique<OnednnLinear>(spec, std::move(format));
}

}  // namespace lockstep
