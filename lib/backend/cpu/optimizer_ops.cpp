#include "backend/cpu/optimizer_ops.h"

#include <algorithm>

#include "backend/cpu/pointwise.h"
#include "core/cpu_features.h"

namespace lockstep {

CpuOptimizerOps::CpuOptimizerOps()
    : kernels_(select_isa(isa_generic::optimizer_kernels, isa_avx2::optimizer_kernels, isa_avx512::optimizer_kernels)) {
}

CpuOptimizerOps::CpuOptimizerOps(const OptimizerKernels& kernels) : kernels_(kernels) {}

void CpuOptimizerOps::sgd(const SgdArgs& args, size_t n, float* p, const float* g, float* momentum) const {
  kernels_.sgd(scalars(args), n, p, g, momentum);
}

void CpuOptimizerOps::adam(const AdamArgs& args, size_t n, float* p, const float* g, float* m, float* v,
                           float* vmax) const {
  kernels_.adam(scalars(args), n, p, g, m, v, vmax);
}

void CpuOptimizerOps::lamb_direction(const LambArgs& args, size_t n, const float* p, const float* g, float* m, float* v,
                                     float* direction) const {
  kernels_.lamb_direction(scalars(args), n, p, g, m, v, direction);
}

void CpuOptimizerOps::adadelta(const AdadeltaArgs& args, size_t n, float* p, const float* g, float* square_avg,
                               float* acc_delta) const {
  kernels_.adadelta(scalars(args), n, p, g, square_avg, acc_delta);
}

void CpuOptimizerOps::rmsprop(const RmspropArgs& args, size_t n, float* p, const float* g, float* square_avg,
                              float* grad_avg, float* momentum) const {
  kernels_.rmsprop(scalars(args), n, p, g, square_avg, grad_avg, momentum);
}

void CpuOptimizerOps::adagrad(const AdagradArgs& args, size_t n, float* p, const float* g, float* sum) const {
  kernels_.adagrad(scalars(args), n, p, g, sum);
}

double CpuOptimizerOps::sum_of_squares(size_t n, const float* x) const { return kernels_.sum_of_squares(n, x); }
double CpuOptimizerOps::sum_of_abs(size_t n, const float* x) const { return kernels_.sum_of_abs(n, x); }
double CpuOptimizerOps::sum_of_powers(size_t n, const float* x, double power) const {
  return kernels_.sum_of_powers(n, x, power);
}
float CpuOptimizerOps::max_abs(size_t n, const float* x) const { return kernels_.max_abs(n, x); }
void CpuOptimizerOps::scale(size_t n, float* x, float factor) const { kernels_.scale(n, x, factor); }
void CpuOptimizerOps::add(size_t n, const float* x, float* y) const { pointwise_kernels().add(n, y, x, y); }
void CpuOptimizerOps::clamp(size_t n, float* x, float limit) const { kernels_.clamp(n, x, limit); }
void CpuOptimizerOps::fill(size_t n, float* x, float value) const { kernels_.fill(n, x, value); }
void CpuOptimizerOps::lerp(size_t n, float* x, const float* y, float weight) const { kernels_.lerp(n, x, y, weight); }
void CpuOptimizerOps::swap(size_t n, float* x, float* y) const { std::swap_ranges(x, x + n, y); }

}  // namespace lockstep
