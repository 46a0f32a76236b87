// The CPU: host memory, oneDNN and own kernels. Stateless apart from its options; every plan is made by a function of
// cpu_plans.h.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/optimizer_ops.h"

namespace lockstep {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) : options_(options) {}
  std::string_view name() const override { return "cpu"; }
  std::string libraries() const override;
  const Memory& memory() const override { return host_memory(); }
  std::unique_ptr<Feed> make_feed(size_t, size_t) override { return std::make_unique<HostFeed>(); }

  Arithmetic arithmetic(DType type) const override;

  void copy(DType type, size_t n, const void* from, void* to) override;
  void fill(size_t n, float value, float* x) override;
  void add(DType type, size_t n, const void* a, const void* b, void* y) override;
  void relu_mask(DType type, size_t n, const void* y, const void* dy, void* dx) override;
  void reorder(const TensorDesc& from, const void* x, const TensorDesc& to, void* y) override;

  const OptimizerOps& optimizer_ops() const override { return optimizer_ops_; }

  std::unique_ptr<Conv2dPlan> plan_conv2d(const Conv2dSpec& spec) override;
  std::unique_ptr<LinearPlan> plan_linear(const LinearSpec& spec) override;
  std::unique_ptr<Pool2dPlan> plan_pool2d(const Pool2dSpec& spec) override;
  std::unique_ptr<BatchNormPlan> plan_batch_norm(const BatchNormSpec& spec) override;
  std::unique_ptr<LayerNormPlan> plan_layer_norm(const LayerNormSpec& spec) override;
  std::unique_ptr<GroupNormPlan> plan_group_norm(const GroupNormSpec& spec) override;
  std::unique_ptr<ActivationPlan> plan_activation(const ActivationSpec& spec) override;
  std::unique_ptr<SoftmaxPlan> plan_softmax(const SoftmaxSpec& spec) override;
  std::unique_ptr<DropoutPlan> plan_dropout(const DropoutSpec& spec) override;
  std::unique_ptr<LossPlan> plan_loss(const LossSpec& spec, int64_t batch, int64_t classes) override;

 private:
  CpuOptions options_;
  CpuOptimizerOps optimizer_ops_;
};

}  // namespace lockstep
