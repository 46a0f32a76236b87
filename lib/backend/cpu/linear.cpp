// Chooses how a fully connected layer is computed, and lets one run on weights that were stored for another order of
// its inputs (a validation batch whose convolutions chose another layout than training's).
#include "backend/cpu/linear.h"

#include "backend/cpu/converting_affine.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "backend/linear_checks.h"
#include "core/buffer.h"
#include "core/error.h"

namespace lockstep {
namespace {

// Own kernels win up to about this many multiplications, as long as transposing the weights for backward_data stays
// cheap (measured on one AVX-512 core: 32x30x20 0.6 us against 1.4, 64x128x10 1.9 against 3.2, 64x64x64 about equal).
constexpr int64_t kSmallProducts = 1 << 18, kSmallWeights = 1 << 12;

std::unique_ptr<LinearPlan> make_matching(const LinearSpec& spec, const CpuOptions& options,
                                          std::shared_ptr<const LinearWeights> format) {
  const int64_t in = spec.input.shape.without_front().numel(), batch = spec.input.shape[0];
  const bool small = options.small_kernels && in <= kSmallWeights / spec.out_features &&
                     batch <= kSmallProducts / (in * spec.out_features);
  if (spec.input.dtype == DType::f32)
    return small ? make_small_linear(spec, std::move(format)) : make_onednn_linear(spec, std::move(format));
  if (spec.input.dtype == DType::bf16 && bf16_products(options) != Bf16Products::converted && !small) {
    if (auto plan = make_onednn_linear(spec, format)) return plan;
  }
  LinearSpec wide = spec;
  wide.input.dtype = DType::f32;
  const size_t weights = format->stored_count();
  return std::make_unique<ConvertingAffine<LinearPlan>>(make_matching(wide, options, std::move(format)), spec.input,
                                                        weights);
}

// Brings x into the order of the weights, and dx back.
class ReorderedLinear final : public LinearPlan {
 public:
  ReorderedLinear(const LinearSpec& spec, const CpuOptions& options, std::shared_ptr<const LinearWeights> format) {
    const int64_t batch = spec.input.shape[0], features = spec.input.shape.without_front().numel();
    const int64_t channels = spec.input.channel_block != 1 ? spec.input.shape[1] : format->channels();
    if (format->channel_block() != 1 && channels != format->channels())
      throw_error("linear: the weights are stored for {} channels, found {}", format->channels(), channels);
    given_ = spec.input;
    given_.shape = Shape{batch, channels, 1, features / channels};
    ordered_ = given_;
    ordered_.channel_block = format->channel_block();
    LinearSpec inner = spec;
    inner.input = ordered_;
    plan_ = make_matching(inner, options, std::move(format));
  }
  TensorDesc output() const override { return plan_->output(); }
  WeightFormatPtr weight_format() const override { return plan_->weight_format(); }
  size_t workspace_bytes() const override { return align_up(ordered_.bytes()) + plan_->workspace_bytes(); }
  void take_weights(const float* w, void* workspace) override { plan_->take_weights(w, rest(workspace)); }
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    plan_->forward(ordered(x, workspace), w, b, y, rest(workspace));
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    plan_->backward_data(dy, w, workspace, rest(workspace));
    reorder_channels(ordered_, workspace, given_, dx);
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    const void* inner_x = dw == nullptr ? nullptr : ordered(x, workspace);
    plan_->backward_weights(inner_x, dy, dw, db, accumulate, rest(workspace));
  }

 private:
  const void* ordered(const void* x, void* workspace) const {
    reorder_channels(given_, x, ordered_, workspace);
    return workspace;
  }
  void* rest(void* workspace) const { return static_cast<std::byte*>(workspace) + align_up(ordered_.bytes()); }

  TensorDesc given_, ordered_;
  std::unique_ptr<LinearPlan> plan_;
};

}  // namespace

std::unique_ptr<LinearPlan> make_cpu_linear(const LinearSpec& spec, const CpuOptions& options) {
  check_linear(spec);
  auto format = linear_weights(spec);
  if (!format->matches(spec.input)) return std::make_unique<ReorderedLinear>(spec, options, std::move(format));
  return make_matching(spec, options, std::move(format));
}

}  // namespace lockstep
