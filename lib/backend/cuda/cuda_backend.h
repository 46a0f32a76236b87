// One GPU: cuBLASLt for linear layers, cuDNN for convolutions, kernels of our own for the rest. Everything is queued on
// the compute stream of its context.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/blas_lt.h"
#include "backend/cuda/context.h"
#include "backend/cuda/cuda_memory.h"
#include "backend/cuda/cuda_recorder.h"
#include "backend/cuda/cuda_stopwatch.h"
#include "backend/cuda/dnn.h"
#include "backend/cuda/optimizer_ops.h"
#include "backend/gpu.h"

namespace lockstep {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const GpuOptions& options);
  std::string_view name() const override { return "cuda"; }
  std::string libraries() const override;
  const Memory& memory() const override { return memory_; }
  std::unique_ptr<Feed> make_feed(size_t x_bytes, size_t target_bytes) override;
  void synchronize() override { context_.synchronize(context_.compute()); }
  cuda::Context* gpu() override { return &context_; }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return std::make_unique<CudaStopwatch>(context_); }
  Recorder* recorder() override { return &recorder_; }

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
  cuda::BlasLt& blas();

  GpuOptions options_;
  cuda::Context context_;
  std::unique_ptr<cuda::BlasLt> blas_;  // once there is a linear layer
  cuda::Dnn dnn_;
  CudaMemory memory_;
  CudaOptimizerOps optimizer_ops_;
  CudaRecorder recorder_;
};

}  // namespace lockstep
