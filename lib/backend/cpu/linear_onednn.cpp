// LinearPlan by oneDNN's inner product. A flattened [N, C, H, W] input is a matrix whose K = C*H*W columns are in the
// order the activation has in memory; the stored weights follow that order, so no step copies either of them.
#include <array>

#include "backend/cpu/bias_sums.h"
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
        format_(std::move(format)),
        passes_(context_, choose(spec)),
        bias_sums_(output()) {}

  TensorDesc output() const final { return {.shape = Shape{batch_, out_}, .channel_block = 1, .dtype = DType::f32}; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return passes_.workspace_bytes(); }
  void forward(const float* x, const float* w, const float* b, float* y, void* workspace) override {
    passes_.forward(x, w, b, y, workspace);
  }
  void backward_data(const float* dy, const float* w, float* dx, void* workspace) override {
    passes_.backward_data(dy, w, dx, workspace);
  }
  void backward_weights(const float* x, const float* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    if (dw == nullptr) return bias_sums_.run(dy, db, accumulate);
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  AffineChoice choose(const LinearSpec& spec) const;

  int64_t batch_, in_, out_;
  std::shared_ptr<const LinearWeights> format_;
  Context context_;
  AffinePasses passes_;
  BiasSums bias_sums_;
};

AffineChoice OnednnLinear::choose(const LinearSpec& spec) const {
  AffineProblem problem;
  problem.x = MemoryDesc(std::array{batch_, in_}, dnnl_ab);
  problem.y = MemoryDesc(std::array{batch_, out_}, dnnl_ab);
  if (spec.bias) problem.bias = MemoryDesc(std::array{out_}, dnnl_a);
  problem.srcs = {problem.x};
  problem.dsts = {problem.y};
  // [in][out] for all three passes. Left to itself the library takes a layout that makes forward a little faster and
  // the weight gradient much slower.
  problem.stored = problem.any_weights = MemoryDesc(std::array{out_, in_}, dnnl_ba);
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  problem.backward_weights = training && spec.weight_gradient;
  problem.backward_data = training && spec.input_gradient;
  problem.makers = {[&problem, relu, training, this](Pass pass, const MemoryDesc& src, const MemoryDesc& weights,
                                                     const MemoryDesc& dst) {
    const PrimitiveDesc forward = inner_product_forward(context_, src, weights, problem.bias, dst, training, relu);
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
