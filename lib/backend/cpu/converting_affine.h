// A convolution or fully connected layer on activations stored in 16 bits where the hardware has no products of their
// type: an fp32 plan between conversions. Weights are rounded to the type first, so that the products are those of
// 16-bit numbers, summed in fp32, as hardware for them does it; every stored activation and gradient overflows and
// underflows as its type does. Weight and bias gradients stay fp32.
#pragma once

#include <memory>

#include "backend/cpu/pointwise.h"
#include "backend/plans.h"
#include "core/buffer.h"

namespace lockstep {

template <class AffinePlan>  // Conv2dPlan or LinearPlan
class ConvertingAffine final : public AffinePlan {
 public:
  // `plan`: the same operation on fp32 activations. input: its input, in the type to be stored.
  ConvertingAffine(std::unique_ptr<AffinePlan> plan, const TensorDesc& input, size_t canonical_weights)
      : plan_(std::move(plan)), kernels_(half_kernels(input.dtype)), output_(plan_->output()) {
    output_.dtype = input.dtype;
    x_count_ = static_cast<size_t>(input.shape.numel());
    y_count_ = static_cast<size_t>(output_.shape.numel());
    weight_count_ = plan_->weight_format() ? plan_->weight_format()->stored_count() : canonical_weights;
    rounded_ = Buffer::host(weight_count_ * sizeof(float));
  }

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return plan_->weight_format(); }
  size_t workspace_bytes() const override { return y_at() + align_up(y_count_ * sizeof(float)); }

  void take_weights(const float* w, void* workspace) override {
    kernels_.round(weight_count_, w, weights());
    plan_->take_weights(weights(), workspace);
  }
  void forward(const void* x, const float* /*w*/, const float* b, void* y, void* workspace) override {
    float* wide_y = at(workspace, y_at());
    plan_->forward(wide_x(x, workspace), weights(), b, wide_y, workspace);
    kernels_.narrow(y_count_, wide_y, y);
  }
  void backward_data(const void* dy, const float* /*w*/, void* dx, void* workspace) override {
    float* wide_dx = at(workspace, x_at());
    plan_->backward_data(wide_dy(dy, workspace), weights(), wide_dx, workspace);
    kernels_.narrow(x_count_, wide_dx, dx);
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    plan_->backward_weights(wide_x(x, workspace), wide_dy(dy, workspace), dw, db, accumulate, workspace);
  }

 private:
  // Workspace: the fp32 plan's, x, y.
  size_t x_at() const { return align_up(plan_->workspace_bytes()); }
  size_t y_at() const { return x_at() + align_up(x_count_ * sizeof(float)); }
  static float* at(void* workspace, size_t offset) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + offset);
  }
  const float* wide_x(const void* x, void* workspace) const {
    kernels_.widen(x_count_, x, at(workspace, x_at()));
    return at(workspace, x_at());
  }
  const float* wide_dy(const void* dy, void* workspace) const {
    kernels_.widen(y_count_, dy, at(workspace, y_at()));
    return at(workspace, y_at());
  }
  float* weights() const { return static_cast<float*>(rounded_.data()); }

  std::unique_ptr<AffinePlan> plan_;
  const HalfKernels& kernels_;
  TensorDesc output_;
  size_t x_count_ = 0, y_count_ = 0, weight_count_ = 0;
  Buffer rounded_;
};

}  // namespace lockstep
