// Optimizer updates, norms and clipping on the GPU, by the same functors as the CPU's (backend/functors.h): the updates
// have the CPU's bits. Sums are in double and in one fixed order, but not the CPU's.
#pragma once

#include "backend/cuda/context.h"
#include "backend/optimizer_ops.h"

namespace lockstep {

// All arrays are device memory. Updates are queued on the compute stream, in a recording with their numbers beside them
// (step_values.h); what returns a number waits for it.
class CudaOptimizerOps final : public OptimizerOps {
 public:
  explicit CudaOptimizerOps(cuda::Context& context);  // outlives this object

  void sgd(const SgdArgs&, size_t n, float* p, const float* g, float* momentum) const override;
  void adam(const AdamArgs&, size_t n, float* p, const float* g, float* m, float* v, float* vmax) const override;
  void lamb_direction(const LambArgs&, size_t n, const float* p, const float* g, float* m, float* v,
                      float* direction) const override;
  void adadelta(const AdadeltaArgs&, size_t n, float* p, const float* g, float* square_avg,
                float* acc_delta) const override;
  void rmsprop(const RmspropArgs&, size_t n, float* p, const float* g, float* square_avg, float* grad_avg,
               float* momentum) const override;
  void adagrad(const AdagradArgs&, size_t n, float* p, const float* g, float* sum) const override;
  double sum_of_squares(size_t n, const float* x) const override;
  double sum_of_abs(size_t n, const float* x) const override;
  double sum_of_powers(size_t n, const float* x, double power) const override;
  float max_abs(size_t n, const float* x) const override;
  void scale(size_t n, float* x, float factor) const override;
  void add(size_t n, const float* x, float* y) const override;
  void clamp(size_t n, float* x, float limit) const override;
  void fill(size_t n, float* x, float value) const override;
  void lerp(size_t n, float* x, const float* y, float weight) const override;
  void swap(size_t n, float* x, float* y) const override;
  std::unique_ptr<SliceNorms> slice_norms(std::span<const NormSlice> slices) const override;

 private:
  template <class Reduction>
  auto reduced(size_t n, const Reduction& reduction) const;
  template <class Rule>
  void run(const typename Rule::Scalars& s, size_t n, float* p, const float* g, float* a = nullptr, float* b = nullptr,
           float* c = nullptr) const;
  template <class Body>
  void queue(size_t n, const Body& body) const;
  // False: what is asked for was recorded, only its numbers are wanted.
  bool queues() const { return context_.values().mode() != cuda::StepValues::Mode::renewing; }
  cudaStream_t stream() const { return context_.compute().get(); }

  cuda::Context& context_;
  Buffer parts_;   // of a sum, on the device
  Buffer result_;  // pinned
};

}  // namespace lockstep
