#include "backend/slice_norms.h"

#include <cmath>
#include <vector>

#include "backend/clip_functors.h"
#include "backend/trust_ratio.h"

namespace lockstep {
namespace {

class HostSliceNorms final : public SliceNorms {
 public:
  HostSliceNorms(const OptimizerOps& ops, std::span<const NormSlice> slices)
      : ops_(ops), slices_(slices.begin(), slices.end()), ratios_(slices.size(), 1) {}

  void clip(float* arena, double max_norm, double norm_type) override {
    NormSum total{norm_type};
    for (const NormSlice& slice : slices_) total.add(norm(slice, arena, norm_type));
    total_ = total.root();
    const float factor = clip_factor(total_, max_norm);
    for (const NormSlice& slice : slices_) ops_.scale(slice.count, arena + slice.offset, factor);
  }
  float total() const override { return total_; }

  void lars_ratios(const float* parameters, const float* gradients, double coefficient, double eps) override {
    for (size_t i = 0; i < slices_.size(); ++i)
      if (slices_[i].adapt)
        ratios_[i] = lars_trust_ratio(coefficient, two_norm(slices_[i], parameters), two_norm(slices_[i], gradients),
                                      slices_[i].weight_decay, eps);
  }
  void lamb_ratios(const float* parameters, const float* updates) override {
    for (size_t i = 0; i < slices_.size(); ++i)
      if (slices_[i].adapt)
        ratios_[i] = lamb_trust_ratio(two_norm(slices_[i], parameters), two_norm(slices_[i], updates));
  }
  void sgd_by_ratio(size_t i, const SgdArgs& args, float* p, const float* g, float* momentum) override {
    SgdArgs scaled = args;
    scaled.weight_decay = ratios_[i] * args.weight_decay;
    scaled.gradient_scale = ratios_[i];
    ops_.sgd(scaled, slices_[i].count, p, g, momentum);
  }
  void step_by_ratio(size_t i, double lr, float* p, const float* update) override {
    ops_.sgd({.lr = lr * ratios_[i]}, slices_[i].count, p, update, nullptr);
  }

 private:
  float norm(const NormSlice& slice, const float* arena, double type) const {
    const float* x = arena + slice.offset;
    if (std::isinf(type)) return ops_.max_abs(slice.count, x);
    if (type == 2) return static_cast<float>(two_norm(slice, arena));
    if (type == 1) return static_cast<float>(ops_.sum_of_abs(slice.count, x));
    return static_cast<float>(std::pow(ops_.sum_of_powers(slice.count, x, type), 1 / type));
  }
  double two_norm(const NormSlice& slice, const float* arena) const {
    return std::sqrt(ops_.sum_of_squares(slice.count, arena + slice.offset));
  }

  const OptimizerOps& ops_;
  std::vector<NormSlice> slices_;
  std::vector<double> ratios_;
  float total_ = 0;
};

}  // namespace

std::unique_ptr<SliceNorms> make_host_slice_norms(const OptimizerOps& ops, std::span<const NormSlice> slices) {
  return std::make_unique<HostSliceNorms>(ops, slices);
}

std::unique_ptr<SliceNorms> OptimizerOps::slice_norms(std::span<const NormSlice> slices) const {
  return make_host_slice_norms(*this, slices);
}

}  // namespace lockstep
