// LinearPlan by oneDNN's inner product. A flattened [N, C, H, W] input is a matrix with K = C*H*W columns in whatever
// order the activation has in memory; the stored weights take that order, so no step copies either of them.
#include <array>

#include "backend/cpu/linear.h"
#include "backend/cpu/onednn_affine.h"
#include "core/error.h"

namespace lockstep {
namespace {

using namespace onednn;

// Canonical [out][C][H][W] -> [out][K in the activation's order] -> the kernels' layout.
class LinearWeights final : public WeightFormat {
 public:
  LinearWeights(const Context& context, const LinearSpec& spec, const MemoryDesc& rows, const MemoryDesc& stored)
      : channel_block(spec.input.channel_block),
        features_(static_cast<size_t>(spec.out_features * spec.input.shape.without_front().numel())),
        stored_(context, rows, stored) {
    if (channel_block == 1) return;
    TensorDesc canonical = spec.input, permuted = spec.input;
    canonical.shape = permuted.shape = spec.input.shape.without_front().with_front(spec.out_features);
    canonical.channel_block = 1;
    permute_ = std::make_unique<StoredWeights>(context, activation_layout(canonical), activation_layout(permuted));
  }
  size_t stored_count() const override { return stored_.stored_count(); }
  void store(std::span<const float> canonical, std::span<float> stored) const override {
    if (!permute_) return stored_.store(canonical, stored);
    std::vector<float> rows(features_);
    permute_->store(canonical, rows);
    stored_.store(rows, stored);
  }
  void load(std::span<const float> stored, std::span<float> canonical) const override {
    if (!permute_) return stored_.load(stored, canonical);
    std::vector<float> rows(features_);
    stored_.load(stored, rows);
    permute_->load(rows, canonical);
  }
  const MemoryDesc& layout() const { return stored_.layout(); }
  const int64_t channel_block;

 private:
  size_t features_;
  StoredWeights stored_;
  std::unique_ptr<StoredWeights> permute_;
};

class OnednnLinear final : public LinearPlan {
 public:
  explicit OnednnLinear(const LinearSpec& spec) : passes_(context_, choose(spec)) {}

  TensorDesc output() const override { return output_; }
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
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  AffineChoice choose(const LinearSpec& spec);

  Context context_;
  TensorDesc output_;
  WeightFormatPtr format_;
  AffinePasses passes_;
};

AffineChoice OnednnLinear::choose(const LinearSpec& spec) {
  const int64_t batch = spec.input.shape[0], features = check_linear(spec);
  output_ = TensorDesc{.shape = Shape{batch, spec.out_features}, .channel_block = 1, .dtype = spec.input.dtype};
  const std::array x{batch, features}, y{batch, spec.out_features}, w{spec.out_features, features};
  AffineProblem problem;
  problem.x = MemoryDesc(x, dnnl_ab);
  problem.y = MemoryDesc(y, dnnl_ab);
  if (spec.bias) problem.bias = MemoryDesc(std::array{spec.out_features}, dnnl_a);
  problem.srcs = {problem.x};
  problem.dsts = {problem.y};
  problem.any_weights = MemoryDesc(w, dnnl_format_tag_any);
  const MemoryDesc rows(w, dnnl_ab);
  if (spec.stored) {
    const auto* format = dynamic_cast<const LinearWeights*>(spec.weight_format.get());
    const int64_t block = format == nullptr ? 1 : format->channel_block;
    if ((spec.weight_format && format == nullptr) || block != spec.input.channel_block)
      throw_error("linear: the weights are stored for another kind of input");
    problem.stored = format == nullptr ? rows : format->layout();
  }
  problem.backward_weights = spec.phase == Phase::training;
  problem.backward_data = problem.backward_weights && spec.input_gradient;
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  problem.makers = {[&, context = context_](Pass pass, const MemoryDesc& src, const MemoryDesc& weights,
                                            const MemoryDesc& dst) {
    const PrimitiveDesc forward = inner_product_forward(context, src, weights, problem.bias, dst, training, relu);
    if (pass == Pass::forward || !forward) return forward;
    if (pass == Pass::backward_data) return inner_product_backward_data(context, src, weights, dst, forward);
    return inner_product_backward_weights(context, src, weights, problem.bias, dst, forward);
  }};
  const AffineChoice choice = choose_affine(problem);
  if (choice.weights != rows || spec.input.channel_block != 1)
    format_ = std::make_shared<LinearWeights>(context_, spec, rows, choice.weights);
  return choice;
}

}  // namespace

std::unique_ptr<LinearPlan> make_onednn_linear(const LinearSpec& spec) { return std::make_unique<OnednnLinear>(spec); }

}  // namespace lockstep
