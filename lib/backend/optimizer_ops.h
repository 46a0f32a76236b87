// One fused elementwise pass per optimizer over a contiguous range of the flat arenas. Rounding as in PyTorch's CPU
// kernels: hyper-parameters are doubles cast to float where they meet a tensor, fma exactly where PyTorch fuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

class SliceNorms;
struct NormSlice;

struct SgdArgs {
  double lr = 0, momentum = 0, dampening = 0, weight_decay = 0;
  double gradient_scale = 1;                                    // g is multiplied by it before weight decay is added
  bool nesterov = false, maximize = false, first_step = false;  // first_step: the momentum buffer becomes a copy of g
};
struct AdamArgs {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, amsgrad = false, maximize = false;  // decoupled: AdamW
  int64_t t = 1;                                              // step number, from 1
};
struct LambArgs {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
  int64_t t = 1;
};
struct AdadeltaArgs {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
struct RmspropArgs {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
struct AdagradArgs {
  double lr = 1e-2, lr_decay = 0, eps = 1e-10, weight_decay = 0;
  bool maximize = false;
  int64_t t = 1;
};

class OptimizerOps {
 public:
  virtual ~OptimizerOps() = default;
  // p: parameters (updated), g: gradients (read), the rest: state of the same length, null where unused.
  virtual void sgd(const SgdArgs&, size_t n, float* p, const float* g, float* momentum) const = 0;
  virtual void adam(const AdamArgs&, size_t n, float* p, const float* g, float* m, float* v, float* vmax) const = 0;
  // LAMB's direction m' / (sqrt(v') + eps) + weight_decay p, into `direction`; p is read only.
  virtual void lamb_direction(const LambArgs&, size_t n, const float* p, const float* g, float* m, float* v,
                              float* direction) const = 0;
  virtual void adadelta(const AdadeltaArgs&, size_t n, float* p, const float* g, float* square_avg,
                        float* acc_delta) const = 0;
  virtual void rmsprop(const RmspropArgs&, size_t n, float* p, const float* g, float* square_avg, float* grad_avg,
                       float* momentum) const = 0;
  virtual void adagrad(const AdagradArgs&, size_t n, float* p, const float* g, float* sum) const = 0;

  // Gradient norms and clipping. Sums of squares and of absolute values in double.
  virtual double sum_of_squares(size_t n, const float* x) const = 0;
  virtual double sum_of_abs(size_t n, const float* x) const = 0;
  virtual double sum_of_powers(size_t n, const float* x, double power) const = 0;  // sum |x|^power
  virtual float max_abs(size_t n, const float* x) const = 0;                       // NaN if any is NaN
  virtual void scale(size_t n, float* x, float factor) const = 0;
  virtual void add(size_t n, const float* x, float* y) const = 0;                 // y += x
  virtual void clamp(size_t n, float* x, float limit) const = 0;                  // to [-limit, limit], NaN stays
  virtual void fill(size_t n, float* x, float value) const = 0;                   // initial state
  virtual void lerp(size_t n, float* x, const float* y, float weight) const = 0;  // x += weight (y - x), fused
  virtual void swap(size_t n, float* x, float* y) const = 0;

  // Norms that stay where they are computed (slice_norms.h). These operations outlive the result.
  virtual std::unique_ptr<SliceNorms> slice_norms(std::span<const NormSlice> slices) const;
};

}  // namespace lockstep
