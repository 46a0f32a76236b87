// LinearPlan by own kernels: three small matrix products, the bias gradient as a product with a row of ones.
#include "backend/cpu/isa/small_gemm_kernels.h"
#include "backend/cpu/linear.h"
#include "core/cpu_features.h"

namespace lockstep {
namespace {

class SmallLinear final : public LinearPlan {
 public:
  SmallLinear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format)
      : kernels_(
            select_isa(isa_generic::small_gemm_kernels, isa_avx2::small_gemm_kernels, isa_avx512::small_gemm_kernels)),
        batch_(spec.input.shape[0]),
        in_(spec.input.shape.without_front().numel()),
        out_(spec.out_features),
        relu_(spec.activation == Activation::relu),
        transposes_(spec.phase == Phase::training && spec.input_gradient),
        format_(std::move(format)) {}

  TensorDesc output() const override { return {.shape = Shape{batch_, out_}, .channel_block = 1, .dtype = DType::f32}; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return transposes_ ? static_cast<size_t>(in_ * out_) * sizeof(float) : 0; }

  void forward(const void* x, const float* w, const float* b, void* y, void* /*workspace*/) override {
    kernels_.gemm({.rows = batch_,
                   .cols = out_,
                   .depth = in_,
                   .a = static_cast<const float*>(x),
                   .a_row = in_,
                   .a_depth = 1,
                   .b = w,
                   .b_row = out_,
                   .bias = b,
                   .accumulate = false,
                   .relu = relu_,
                   .c = static_cast<float*>(y),
                   .c_row = out_});
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    auto* w_out_in = static_cast<float*>(workspace);
    kernels_.transpose(in_, out_, w, w_out_in);
    kernels_.gemm({.rows = batch_,
                   .cols = in_,
                   .depth = out_,
                   .a = static_cast<const float*>(dy),
                   .a_row = out_,
                   .a_depth = 1,
                   .b = w_out_in,
                   .b_row = in_,
                   .bias = nullptr,
                   .accumulate = false,
                   .relu = false,
                   .c = static_cast<float*>(dx),
                   .c_row = in_});
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* /*workspace*/) override {
    if (dw != nullptr) weight_gradient(static_cast<const float*>(x), static_cast<const float*>(dy), dw, accumulate);
    if (db == nullptr) return;
    static constexpr float kOne = 1;
    kernels_.gemm({.rows = 1,
                   .cols = out_,
                   .depth = batch_,
                   .a = &kOne,
                   .a_row = 0,
                   .a_depth = 0,
                   .b = static_cast<const float*>(dy),
                   .b_row = out_,
                   .bias = nullptr,
                   .accumulate = accumulate,
                   .relu = false,
                   .c = db,
                   .c_row = out_});
  }

 private:
  void weight_gradient(const float* x, const float* dy, float* dw, bool accumulate) {
    kernels_.gemm({.rows = in_,
                   .cols = out_,
                   .depth = batch_,
                   .a = x,
                   .a_row = 1,
                   .a_depth = in_,
                   .b = dy,
                   .b_row = out_,
                   .bias = nullptr,
                   .accumulate = accumulate,
                   .relu = false,
                   .c = dw,
                   .c_row = out_});
  }

  const SmallGemmKernels& kernels_;
  int64_t batch_, in_, out_;
  bool relu_, transposes_;
  std::shared_ptr<const LinearWeights> format_;
};

}  // namespace

std::unique_ptr<LinearPlan> make_small_linear(const LinearSpec& spec, std::shared_ptr<const LinearWeights> format) {
  return std::make_unique<SmallLinear>(spec, std::move(format));
}

}  // namespace lockstep
