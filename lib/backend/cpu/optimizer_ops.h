// The optimizers on the CPU: casts the arguments to float and runs the kernels of the best instruction set.
#pragma once

#include "backend/cpu/optimizer_kernels.h"
#include "backend/optimizer_ops.h"

namespace lockstep {

class CpuOptimizerOps final : public OptimizerOps {
 public:
  CpuOptimizerOps();                                          // the running CPU's best kernels
  explicit CpuOptimizerOps(const OptimizerKernels& kernels);  // these

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

 private:
  const OptimizerKernels& kernels_;
};

}  // namespace lockstep
