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
  OnednnLinear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format, const Context& context,
               const AffineChoice& choice)
      : output_{.shape = Shape{spec.input.shape[0], spec.out_features}, .channel_block = 1, .dtype = spec.input.dtype},
        format_(std::move(format)),
        passes_(context, choice),
        bias_sums_(output_) {}

  TensorDesc output() const override { return output_; }
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
    if (dw == nullptr) return bias_sums_.run(dy, db, accumulate);
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  TensorDesc output_;
  std::shared_ptr<const LinearWeights> format_;
  AffinePasses passes_;
  BiasSums bias_sums_;
};

AffineChoice choose(const Context& context, const LinearSpec& spec) {
  const int64_t batch = spec.input.shape[0], in = spec.input.shape.without_front().numel(), out = spec.out_features;
  const DType type = spec.input.dtype;
  AffineProblem problem;
  problem.x = MemoryDesc(std::array{batch, in}, dnnl_ab, type);
  problem.y = MemoryDesc(std::array{batch, out}, dnnl_ab, type);
  if (spec.bias) problem.bias = MemoryDesc(std::array{out}, dnnl_a);
  problem.srcs = {problem.x};
  problem.dsts = {problem.y};
  // [in][out] for all three passes. Left to itself the library takes a layout that makes forward a little faster and
  // the weight gradient much slower.
  problem.type = type;
  problem.stored = problem.any_gradient = MemoryDesc(std::array{out, in}, dnnl_ba);
  problem.any_weights = MemoryDesc(std::array{out, in}, dnnl_ba, type);
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  problem.backward_weights = training && spec.weight_gradient;
  problem.backward_data = training && spec.input_gradient;
  problem.makers = {[&problem, relu, training, &context](Pass pass, const MemoryDesc& src, const MemoryDesc& weights,
                                                         const MemoryDesc& dst) {
    const MemoryDesc& read = pass == Pass::backward_weights ? problem.any_weights : weights;
    const PrimitiveDesc forward = inner_product_forward(context, src, read, problem.bias, dst, training, relu);
    if (pass == Pass::forward || !forward) return forward;
    if (pass == Pass::backward_data) return inner_product_backward_data(context, src, weights, dst, forward);
    return inner_product_backward_weights(context, src, weights, problem.bias, dst, forward);
  }};
  return choose_affine(problem);
}

}  // namespace

std::unique_ptr<LinearPlan> make_onednn_linear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format) {
  const Context context;
  const AffineChoice choice = choose(context, spec);
  if (spec.input.dtype != DType::f32 && choice.cost >= kReferenceCost) return nullptr;
  return std::make_unique<OnednnLinear>(spec, std::move(format), context, choice);
}

}  // namespace lockstep
