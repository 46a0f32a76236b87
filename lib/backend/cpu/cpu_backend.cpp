#include "backend/cpu/cpu_backend.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <memory>

#include "backend/cpu/bf16_rate.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/onednn_api.h"
#include "backend/cpu/pointwise.h"
#include "core/cpu_features.h"

namespace lockstep {

std::string CpuBackend::libraries() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({:.12})", version->major, version->minor, version->patch, version->hash);
}

Bf16Products bf16_products(const CpuOptions& options) {
  if (options.bf16 != Bf16Products::detect) return options.bf16;
  if (detect_isa() != Isa::avx512) return Bf16Products::converted;  // LOCKSTEP_MAX_ISA counts here too
  switch (onednn::bf16_hardware()) {
    case onednn::Bf16Hardware::amx: return Bf16Products::amx;
    case onednn::Bf16Hardware::avx512:
      return bf16_dot_product_gain() > 1 ? Bf16Products::avx512 : Bf16Products::converted;
    case onednn::Bf16Hardware::none: break;
  }
  return Bf16Products::converted;
}

static const float* floats(const void* x) { return static_cast<const float*>(x); }
static float* floats(void* x) { return static_cast<float*>(x); }

Arithmetic CpuBackend::arithmetic(DType type) const {
  if (type == DType::f32) return {.text = "fp32", .missing = ""};
  std::string missing = "half-precision products are not used on CPUs";
  if (type == DType::bf16) {
    const Bf16Products products = bf16_products(options_);
    if (products == Bf16Products::amx) return {.text = "bf16 (AMX)", .missing = ""};
    if (products == Bf16Products::avx512) return {.text = "bf16 (AVX-512 bf16)", .missing = ""};
    missing = onednn::bf16_hardware() == onednn::Bf16Hardware::none ? "this CPU has neither AMX nor AVX-512 bf16"
              : detect_isa() != Isa::avx512
                  ? "LOCKSTEP_MAX_ISA leaves AMX and AVX-512 bf16 out"
                  : "this CPU's AVX-512 bf16 is slower than its fp32, and AMX is not to be had";
  }
  return {.text = fmt::format("{} (products in fp32)", lockstep::name(type)), .missing = missing};
}

void CpuBackend::copy(DType type, size_t n, const void* from, void* to) {
  if (n != 0) std::memcpy(to, from, n * size_of(type));
}
void CpuBackend::fill(size_t n, float value, float* x) { pointwise_kernels().fill(n, value, x); }
void CpuBackend::add(DType type, size_t n, const void* a, const void* b, void* y) {
  if (type == DType::f32)
    pointwise_kernels().add(n, floats(a), floats(b), floats(y));
  else
    half_kernels(type).add(n, a, b, y);
}
void CpuBackend::relu_mask(DType type, size_t n, const void* y, const void* dy, void* dx) {
  if (type == DType::f32)
    pointwise_kernels().relu_mask(n, floats(y), floats(dy), floats(dx));
  else
    half_kernels(type).relu_mask(n, y, dy, dx);
}
void CpuBackend::reorder(const TensorDesc& from, const void* x, const TensorDesc& to, void* y) {
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
