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
class CudaLinear final : public LinearPlan {
 public:
  CudaLinear(const cuda::BlasLt& blas, const LinearSpec& spec)
      : context_(blas.context()),
        format_(cuda_linear_weights(spec)),
        output_{Shape{spec.input.shape[0], spec.out_features}, 1, spec.input.dtype},
        out_(static_cast<size_t>(spec.out_features)) {
    const DType type = spec.input.dtype;
    const int64_t batch = spec.input.shape[0], in = spec.input.shape.without_front().numel(), out = spec.out_features;
    const cuda::Matrix w{type, in, out}, x{type, in, batch}, dy{type, out, batch};
    const auto transposed = [](cuda::Matrix matrix) { return matrix.transposed = true, matrix; };
    const bool relu = spec.activation == Activation::relu;
    forward_.emplace(blas,
                     cuda::ProductSpec{.a = transposed(w), .b = x, .type = type, .bias = spec.bias, .relu = relu});
    if (spec.phase == Phase::training && spec.input_gradient)
      backward_data_.emplace(blas, cuda::ProductSpec{.a = w, .b = dy, .type = type});
    if (spec.phase == Phase::training && spec.weight_gradient)
      backward_weights_.emplace(blas, cuda::ProductSpec{.a = x, .b = transposed(dy), .type = DType::f32});
    if (type == DType::f32) return;
    weights_ = context_.allocate(static_cast<size_t>(in * out) * size_of(type));
    bias_ = context_.allocate(out_ * size_of(type));
  }

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return format_; }
  // What a product wants, from an aligned address, then parts of the bias gradient.
  size_t workspace_bytes() const override {
    return cuda::Product::workspace_alignment + product_bytes() + cuda::bias_sums_bytes(rows(), out_);
  }

  void take_weights(const float* w, void* /*workspace*/) override {
    if (weights_.bytes() != 0)
      cuda_convert(context_, weights_.bytes() / size_of(output_.dtype), DType::f32, w, output_.dtype, weights_.data());
  }
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    const void* bias = b;
    if (b != nullptr && bias_.bytes() != 0) {
      cuda_convert(context_, out_, DType::f32, b, output_.dtype, bias_.data());
      bias = bias_.data();
    }
    forward_->run(weights(w), x, bias, false, y, aligned(workspace));
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    backward_data_->run(weights(w), dy, nullptr, false, dx, aligned(workspace));
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    std::byte* scratch = aligned(workspace);
    if (dw != nullptr) backward_weights_->run(x, dy, nullptr, accumulate, dw, scratch);
    if (db != nullptr)
      cuda::bias_sums(context_, output_.dtype, rows(), out_, dy, accumulate, db, scratch + product_bytes());
  }

 private:
  const void* weights(const float* w) const { return weights_.bytes() != 0 ? weights_.data() : w; }
  size_t rows() const { return static_cast<size_t>(output_.shape[0]); }
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
  size_t out_;
  std::optional<cuda::Product> forward_, backward_data_, backward_weights_;
  Buffer weights_, bias_;  // in 16 bits
};

}  // namespace

std::unique_ptr<LinearPlan> make_cuda_linear(const cuda::BlasLt& blas, const LinearSpec& spec) {
  check_linear(spec);
  return std::make_unique<CudaLinear>(blas, spec);
}

}  // namespace lockstep
