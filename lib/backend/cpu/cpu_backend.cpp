#include "backend/cpu/cpu_backend.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "core/cpu_features.h"

namespace lockstep {

std::string CpuBackend::libraries() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({:.12})", version->major, version->minor, version->patch, version->hash);
}

void CpuBackend::copy(size_t n, const float* from, float* to) {
  if (n != 0) std::memcpy(to, from, n * sizeof(float));
}
void CpuBackend::fill(size_t n, float value, float* x) { pointwise_kernels().fill(n, value, x); }
void CpuBackend::add(size_t n, const float* a, const float* b, float* y) { pointwise_kernels().add(n, a, b, y); }
void CpuBackend::relu_mask(size_t n, const float* y, const float* dy, float* dx) {
  pointwise_kernels().relu_mask(n, y, dy, dx);
}
void CpuBackend::reorder(const TensorDesc& from, const float* x, const TensorDesc& to, float* y) {
  reorder_channels(from, x, to, y);
}

std::unique_ptr<Conv2dPlan> CpuBackend::plan_conv2d(const Conv2dSpec& spec) { return make_cpu_conv2d(spec, options_); }
std::unique_ptr<LinearPlan> CpuBackend::plan_linear(const LinearSpec& spec) { return make_cpu_linear(spec, options_); }
std::unique_ptr<Pool2dPlan> CpuBackend::plan_pool2d(const Pool2dSpec& spec) { return make_cpu_pool2d(spec); }
std::unique_ptr<BatchNormPlan> CpuBackend::plan_batch_norm(const BatchNormSpec& spec) {
  return make_cpu_batch_norm(spec);
}
std::unique_ptr<LayerNormPlan> CpuBackend::plan_layer_norm(const LayerNormSpec& spec) {
  return make_cpu_layer_norm(spec);
}
std::unique_ptr<GroupNormPlan> CpuBackend::plan_group_norm(const GroupNormSpec& spec) {
  return make_cpu_group_norm(spec);
}
std::unique_ptr<ActivationPlan> CpuBackend::plan_activation(const ActivationSpec& spec) {
  return make_cpu_activation(spec);
}
std::unique_ptr<SoftmaxPlan> CpuBackend::plan_softmax(const SoftmaxSpec& spec) { return make_cpu_softmax(spec); }
std::unique_ptr<DropoutPlan> CpuBackend::plan_dropout(const DropoutSpec& spec) { return make_cpu_dropout(spec); }
std::unique_ptr<LossPlan> CpuBackend::plan_loss(const LossSpec& spec, int64_t batch, int64_t classes) {
  return make_cpu_loss(spec, batch, classes);
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  omp_set_num_threads(options.threads);  // oneDNN reads it when it makes a plan
  if (options.flush_denormals) {
#pragma omp parallel
    flush_denormals();
  }
  return std::make_unique<CpuBackend>(options);
}

}  // namespace lockstep
