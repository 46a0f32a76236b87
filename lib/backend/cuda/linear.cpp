#include "backend/cuda/linear.h"

#include <algorithm>
#include <optional>

#include "backend/cuda/bias_sums.h"
#include "backend/cuda/linear_weights.h"
#include "backend/cuda/pointwise.h"
#include "backend/linear_checks.h"

namespace lockstep {
namespace {

// y [N][out] = x [N][in] w[out][in]^T. To cuBLAS, which goes down columns, every matrix is its own transpose.
class CudaLinear final : public LinearPlan, private LinearPair {
 public:
  CudaLinear(const cuda::BlasLt& blas, const LinearSpec& spec)
      : context_(blas.context()),
        format_(cuda_linear_weights(spec)),
        output_{Shape{spec.input.shape[0], spec.out_features}, 1, spec.input.dtype},
        in_(static_cast<size_t>(spec.input.shape.without_front().numel())),
        out_(static_cast<size_t>(spec.out_features)) {
    plan_forward(blas, spec);
    if (spec.phase == Phase::training && spec.input_gradient) plan_data(blas, spec);
    if (spec.phase == Phase::training && spec.weight_gradient) plan_weights(blas, spec);
    if (type() == DType::f32) return;
    weights_ = context_.allocate(in_ * out_ * size_of(type()));
    bias_ = context_.allocate(out_ * size_of(type()));
  }

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t saved_bytes() const override { return keeps_mask_ ? cuda::Product::mask_bytes(count(out_), batch()) : 0; }
  // What a product wants, from an aligned address, then (parts of) a bias gradient.
  size_t workspace_bytes() const override {
    return cuda::Product::workspace_alignment + product_bytes() +
           std::max(bias_bytes(out_), masks_input_ ? bias_bytes(in_) : 0);
  }
  LinearPair* pair() override { return keeps_mask_ || masks_input_ ? this : nullptr; }

  void take_weights(const float* w, void* /*workspace*/) override {
    if (weights_.bytes() != 0) cuda_convert(context_, in_ * out_, DType::f32, w, type(), weights_.data());
  }
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    forward_->run({.a = weights(w), .b = x, .d = y, .workspace = aligned(workspace), .bias = bias(b)});
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    backward_data_->run({.a = weights(w), .b = dy, .d = dx, .workspace = aligned(workspace)});
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    std::byte *scratch = aligned(workspace), *sums = scratch + product_bytes();
    const bool summed = dw != nullptr && sums_with_weights_;
    if (dw != nullptr)
      backward_weights_->run({.a = x,
                              .b = dy,
                              .d = dw,
                              .workspace = scratch,
                              .bias_gradient = overwritten(db, accumulate, sums),
                              .accumulate = accumulate});
    take_bias_gradient(summed, out_, dy, db, accumulate, sums);
  }

 private:
  void forward_keeping_mask(const void* x, const float* w, const float* b, void* y, void* saved,
                            void* workspace) override {
    forward_->run({.a = weights(w), .b = x, .d = y, .workspace = aligned(workspace), .bias = bias(b), .mask = saved});
  }
  // A bias gradient of 16 bits would lose what fp32 keeps: there the first layer has it from its own weight gradient.
  bool leaves_bias_gradient() const override { return keeps_mask_ && type() == DType::f32; }
  void backward_data_masked(const LinearBefore& before, const void* dy, const float* w, void* dx,
                            void* workspace) override {
    std::byte *scratch = aligned(workspace), *sums = scratch + product_bytes();
    backward_data_->run({.a = weights(w),
                         .b = dy,
                         .d = dx,
                         .workspace = scratch,
                         .bias_gradient = overwritten(before.bias_gradient, before.accumulate, sums),
                         .mask = const_cast<void*>(before.mask)});
    if (!masks_with_data_) cuda_relu_mask(context_, type(), rows() * in_, before.y, dx, dx);
    take_bias_gradient(sums_with_data_, in_, dx, before.bias_gradient, before.accumulate, sums);
  }
  bool masks_by_output() const override { return !masks_with_data_; }

  void plan_forward(const cuda::BlasLt& blas, const LinearSpec& spec) {
    cuda::ProductSpec product{
        .a = transposed(w()), .b = x(), .type = type(), .bias = spec.bias, .relu = spec.activation == Activation::relu};
    if (spec.keeps_mask && product.relu && spec.phase == Phase::training) {
      product.mask = true;
      forward_ = cuda::Product::find(blas, product);
      keeps_mask_ = forward_.has_value();
      product.mask = false;
    }
    if (!forward_) forward_.emplace(blas, product);
  }
  // As much of the masking as the library has an algorithm for; kernels do the rest.
  void plan_data(const cuda::BlasLt& blas, const LinearSpec& spec) {
    cuda::ProductSpec product{.a = w(), .b = dy(), .type = type()};
    masks_input_ = product.mask = spec.masks_input;
    product.bias_gradient = spec.masks_input && spec.input_bias_gradient && type() == DType::f32;
    sums_with_data_ = product.bias_gradient && (backward_data_ = cuda::Product::find(blas, product));
    product.bias_gradient = false;
    if (!backward_data_ && product.mask) backward_data_ = cuda::Product::find(blas, product);
    masks_with_data_ = product.mask && backward_data_;
    product.mask = false;
    if (!backward_data_) backward_data_.emplace(blas, product);
  }
  void plan_weights(const cuda::BlasLt& blas, const LinearSpec& spec) {
    cuda::ProductSpec product{.a = x(), .b = transposed(dy()), .type = DType::f32};
    product.bias_gradient = spec.bias && spec.bias_gradient && !leaves_bias_gradient();
    if (product.bias_gradient) backward_weights_ = cuda::Product::find(blas, product);
    sums_with_weights_ = backward_weights_.has_value();
    product.bias_gradient = false;
    if (!backward_weights_) backward_weights_.emplace(blas, product);
  }

  // Products overwrite bias gradients: one that is to be added to goes to scratch first.
  static void* overwritten(float* gradient, bool accumulate, void* scratch) {
    return gradient == nullptr || accumulate ? scratch : gradient;
  }
  // summed: a product has put the gradient where overwritten() says. Otherwise it is the sums of these columns.
  void take_bias_gradient(bool summed, size_t columns, const void* dy, float* db, bool accumulate, void* scratch) {
    if (db == nullptr) return;
    if (!summed) return cuda::bias_sums(context_, type(), rows(), columns, dy, accumulate, db, scratch);
    if (accumulate) cuda_add(context_, DType::f32, columns, db, scratch, db);
  }

  DType type() const { return output_.dtype; }
  int64_t batch() const { return output_.shape[0]; }
  size_t rows() const { return static_cast<size_t>(batch()); }
  static int64_t count(size_t features) { return static_cast<int64_t>(features); }
  cuda::Matrix w() const { return {type(), count(in_), count(out_)}; }
  cuda::Matrix x() const { return {type(), count(in_), batch()}; }
  cuda::Matrix dy() const { return {type(), count(out_), batch()}; }
  static cuda::Matrix transposed(cuda::Matrix matrix) { return matrix.transposed = true, matrix; }

  const void* weights(const float* w) const { return weights_.bytes() != 0 ? weights_.data() : w; }
  const void* bias(const float* b) const {
    if (b == nullptr || bias_.bytes() == 0) return b;
    cuda_convert(context_, out_, DType::f32, b, type(), bias_.data());
    return bias_.data();
  }
  size_t bias_bytes(size_t features) const {
    return std::max(cuda::bias_sums_bytes(rows(), features), features * sizeof(float));
  }
  size_t product_bytes() const {
    size_t most = forward_->workspace_bytes();
    if (backward_data_) most = std::max(most, backward_data_->workspace_bytes());
    if (backward_weights_) most = std::max(most, backward_weights_->workspace_bytes());
    return align_up(most);
  }
  static std::byte* aligned(void* workspace) {
    constexpr uintptr_t mask = cuda::Product::workspace_alignment - 1;
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    return static_cast<std::byte*>(workspace) + (((address + mask) & ~mask) - address);
  }

  const cuda::Context& context_;
  std::shared_ptr<const CudaLinearWeights> format_;
  TensorDesc output_;
  size_t in_, out_;
  std::optional<cuda::Product> forward_, backward_data_, backward_weights_;
  bool keeps_mask_ = false, masks_input_ = false;          // the first, the second of a pair
  bool masks_with_data_ = false, sums_with_data_ = false;  // by the product that makes the input's gradient
  bool sums_with_weights_ = false;                         // by the one that makes the weights'
  Buffer weights_, bias_;                                  // in 16 bits
};

}  // namespace

std::unique_ptr<LinearPlan> make_cuda_linear(const cuda::BlasLt& blas, const LinearSpec& spec) {
  check_linear(spec);
  return std::make_unique<CudaLinear>(blas, spec);
}

}  // namespace lockstep
