#include "backend/cuda/cuda_backend.h"

#include "backend/cuda/cuda_feed.h"
#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/keeping_feed.h"
#include "backend/cuda/linear.h"
#include "backend/cuda/loss.h"
#include "backend/cuda/pointwise.h"
#include "backend/factory.h"
#include "backend/gpu.h"
#include "core/error.h"

namespace lockstep {

CudaBackend::CudaBackend(const GpuOptions& options)
    : options_(options),
      context_(options.index),
      dnn_(context_, {.deterministic = options.deterministic,
                      .measure = options.measure_convolutions,
                      .tf32 = options.tf32,
                      .workspace_limit = options.convolution_workspace}),
      memory_(context_),
      optimizer_ops_(context_),
      recorder_(context_) {}

std::string CudaBackend::libraries() const {
  std::string text = fmt::format("CUDA {}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  for (const LibraryVersion& library : gpu_libraries()) text += fmt::format(", {} {}", library.name, library.version);
  return text;
}

std::unique_ptr<Feed> CudaBackend::make_feed(size_t x_bytes, size_t target_bytes) {
  return std::make_unique<CudaFeed>(context_, x_bytes, target_bytes);
}

std::unique_ptr<Feed> CudaBackend::make_keeping_feed(const StoredRows& rows, const ImageFormat& image,
                                                     int64_t most_rows) {
  return std::make_unique<KeepingFeed>(context_, memory_, rows, image, most_rows);
}

std::optional<DeviceMemory> CudaBackend::device_memory() const {
  return DeviceMemory{.device = gpu_in_use(gpu_facts(), context_.device()).uuid, .free = context_.free_bytes()};
}

Arithmetic CudaBackend::arithmetic(DType type) const {
  if (type != DType::f32) return {.text = std::string(lockstep::name(type)), .missing = ""};
  return {.text = options_.tf32 ? "fp32 (products in TF32)" : "fp32 (without TF32)", .missing = ""};
}

void CudaBackend::copy(DType type, size_t n, const void* from, void* to) { cuda_copy(context_, type, n, from, to); }
void CudaBackend::fill(size_t n, float value, float* x) { cuda_fill(context_, n, value, x); }
void CudaBackend::add(DType type, size_t n, const void* a, const void* b, void* y) {
  cuda_add(context_, type, n, a, b, y);
}
void CudaBackend::relu_mask(DType type, size_t n, const void* y, const void* dy, void* dx) {
  cuda_relu_mask(context_, type, n, y, dy, dx);
}
void CudaBackend::reorder(const TensorDesc& from, const void* x, const TensorDesc& to, void* y) {
  cuda_reorder(context_, from, x, to, y);
}

std::unique_ptr<Conv2dPlan> CudaBackend::plan_conv2d(const Conv2dSpec& spec) {
  return cuda::make_conv2d(context_, dnn_, spec);
}

cuda::BlasLt& CudaBackend::blas() {
  if (!blas_) blas_ = std::make_unique<cuda::BlasLt>(context_, options_.tf32);
  return *blas_;
}
std::unique_ptr<LinearPlan> CudaBackend::plan_linear(const LinearSpec& spec) { return make_cuda_linear(blas(), spec); }
std::unique_ptr<Pool2dPlan> CudaBackend::plan_pool2d(const Pool2dSpec& spec) {
  return cuda::make_pool2d(context_, spec);
}
std::unique_ptr<BatchNormPlan> CudaBackend::plan_batch_norm(const BatchNormSpec& spec) {
  return cuda::make_batch_norm(context_, spec);
}
std::unique_ptr<LayerNormPlan> CudaBackend::plan_layer_norm(const LayerNormSpec& spec) {
  return cuda::make_layer_norm(context_, spec);
}
std::unique_ptr<GroupNormPlan> CudaBackend::plan_group_norm(const GroupNormSpec& spec) {
  return cuda::make_group_norm(context_, spec);
}
std::unique_ptr<ActivationPlan> CudaBackend::plan_activation(const ActivationSpec& spec) {
  return make_cuda_activation(context_, spec);
}
std::unique_ptr<SoftmaxPlan> CudaBackend::plan_softmax(const SoftmaxSpec& spec) {
  return make_cuda_softmax(context_, spec);
}
std::unique_ptr<DropoutPlan> CudaBackend::plan_dropout(const DropoutSpec& spec) {
  return make_cuda_dropout(context_, spec);
}
std::unique_ptr<LossPlan> CudaBackend::plan_loss(const LossSpec& spec, int64_t batch, int64_t classes) {
  return make_cuda_loss(context_, spec, batch, classes);
}

std::unique_ptr<Backend> make_cuda_backend(const GpuOptions& options) { return std::make_unique<CudaBackend>(options); }

}  // namespace lockstep
