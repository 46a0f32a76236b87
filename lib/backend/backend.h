// A device and its kernels: plans for stateful operations, plain calls for pointwise ones. One level of inheritance:
// CpuBackend (cpu/), CudaBackend (cuda/). Passed in everywhere, never global. Calls and plans of a GPU return when the
// work is queued; only what hands numbers to the host waits for it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backend/feed.h"
#include "backend/loss_ops.h"
#include "backend/memory.h"
#include "backend/optimizer_ops.h"
#include "backend/plans.h"
#include "backend/recorder.h"
#include "backend/specs.h"
#include "backend/stopwatch.h"
#include "core/buffer.h"

namespace lockstep {

namespace cuda {
class Context;
}

struct Arithmetic {
  std::string text;  // "bf16 (AMX)"
  // Why products of this type are computed in fp32, at no gain in time; empty: they are not.
  std::string missing;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cpu"
  // What computes beside our own code, with versions: "oneDNN 2.6.3".
  virtual std::string libraries() const = 0;
  // Where all arrays are that calls and plans get.
  virtual const Memory& memory() const = 0;
  Buffer allocate(size_t bytes) const { return memory().allocate(bytes); }  // zeroed
  // For batches of at most so many bytes of inputs and of targets.
  virtual std::unique_ptr<Feed> make_feed(size_t x_bytes, size_t target_bytes) = 0;
  virtual void synchronize() {}                     // returns when all is done that was asked for
  virtual cuda::Context* gpu() { return nullptr; }  // what it computes on; null: no GPU
  virtual std::unique_ptr<Stopwatch> make_stopwatch() { return std::make_unique<HostStopwatch>(); }
  virtual Recorder* recorder() { return nullptr; }  // null: nothing would be gained

  // How layers whose activations have this type are computed here, for the start of a run.
  virtual Arithmetic arithmetic(DType type) const = 0;

  // Pointwise on n elements of a type.
  virtual void copy(DType type, size_t n, const void* from, void* to) = 0;
  virtual void fill(size_t n, float value, float* x) = 0;
  virtual void add(DType type, size_t n, const void* a, const void* b, void* y) = 0;  // y = a + b; y may be a or b
  // dx = y > 0 ? dy : 0; dx may be dy
  virtual void relu_mask(DType type, size_t n, const void* y, const void* dy, void* dx) = 0;
  // Copies between channel blocks and between f32 and the 16-bit types: same shape.
  virtual void reorder(const TensorDesc& from, const void* x, const TensorDesc& to, void* y) = 0;

  virtual const OptimizerOps& optimizer_ops() const = 0;

  virtual std::unique_ptr<Conv2dPlan> plan_conv2d(const Conv2dSpec&) = 0;
  virtual std::unique_ptr<LinearPlan> plan_linear(const LinearSpec&) = 0;
  virtual std::unique_ptr<Pool2dPlan> plan_pool2d(const Pool2dSpec&) = 0;
  virtual std::unique_ptr<BatchNormPlan> plan_batch_norm(const BatchNormSpec&) = 0;
  virtual std::unique_ptr<LayerNormPlan> plan_layer_norm(const LayerNormSpec&) = 0;
  virtual std::unique_ptr<GroupNormPlan> plan_group_norm(const GroupNormSpec&) = 0;
  virtual std::unique_ptr<ActivationPlan> plan_activation(const ActivationSpec&) = 0;
  virtual std::unique_ptr<SoftmaxPlan> plan_softmax(const SoftmaxSpec&) = 0;
  virtual std::unique_ptr<DropoutPlan> plan_dropout(const DropoutSpec&) = 0;
  virtual std::unique_ptr<LossPlan> plan_loss(const LossSpec&, int64_t batch, int64_t classes) = 0;
};

// Products of bf16 numbers: by the library, in the layouts that suit VDPBF16PS or AMX (it emulates what the CPU lacks,
// slowly), or in fp32 after a conversion. detect: whichever of them the CPU has.
enum class Bf16Products { detect, converted, avx512, amx };

struct CpuOptions {
  int threads = 1;              // compute threads of this rank
  bool flush_denormals = true;  // in all of these threads: denormal operands cost a hundred cycles each
  bool winograd = true;         // let convolutions use Winograd where the library has it (faster, last digits differ)
  bool small_kernels = true;    // own kernels for tiny linear layers (else oneDNN; for comparison)
  Bf16Products bf16 = Bf16Products::detect;  // anything else is for tests
};
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace lockstep
