// Norms of slices of a flat arena (one a parameter), and what clipping and trust ratios make of them. Nothing here
// waits for a device but what says so: a norm stays where it was computed and is applied from there.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "backend/optimizer_ops.h"

namespace lockstep {

struct NormSlice {
  size_t offset = 0, count = 0;  // floats of the arena
  double weight_decay = 0;       // in LARS's ratio
  bool adapt = true;             // false: its ratio is 1
};

// Made for a list of slices by OptimizerOps::slice_norms. Arenas are where the operations compute. Nothing is allocated
// after construction.
class SliceNorms {
 public:
  virtual ~SliceNorms() = default;

  // As clip_grad_norm_: a float norm per slice, the float norm of these norms, then every slice times
  // min(1, max_norm / (total + 1e-6)), also when that is 1 (a NaN reaches all of them). norm_type: 1, 2, any p > 0, or
  // infinity. Gaps between slices are not touched.
  virtual void clip(float* arena, double max_norm, double norm_type) = 0;
  // The total norm that the last clip found: NaN or infinite when an element was. Waits for it.
  virtual float total() const = 0;

  // A trust ratio per slice (trust_ratio.h) from 2-norms.
  virtual void lars_ratios(const float* parameters, const float* gradients, double coefficient, double eps) = 0;
  virtual void lamb_ratios(const float* parameters, const float* updates) = 0;
  // Updates of slice i by its ratio, the pointers at its first element. As OptimizerOps::sgd, the gradient and the
  // weight decay times the ratio (args.gradient_scale is not read); and p -= lr ratio update.
  virtual void sgd_by_ratio(size_t i, const SgdArgs& args, float* p, const float* g, float* momentum) = 0;
  virtual void step_by_ratio(size_t i, double lr, float* p, const float* update) = 0;
};

// By the sums that `ops` hand to the host, which is what a CPU wants. ops: outlives the result.
std::unique_ptr<SliceNorms> make_host_slice_norms(const OptimizerOps& ops, std::span<const NormSlice> slices);

}  // namespace lockstep
