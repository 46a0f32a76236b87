#include "optim/clip.h"

#include <vector>

#include "core/error.h"

namespace lockstep {

NormClip::NormClip(const OptimizerOps& ops, std::span<const ParameterRange> slices, double max_norm, double norm_type)
    : max_norm_(max_norm), norm_type_(norm_type) {
  if (!(max_norm >= 0)) throw_error("train.clip_norm: expected a number from 0, found {}", max_norm);
  if (!(norm_type > 0)) throw_error("train.clip_norm_type: expected a number above 0 or inf, found {}", norm_type);
  std::vector<NormSlice> all;
  for (const ParameterRange& slice : slices) all.push_back({.offset = slice.offset, .count = slice.count});
  norms_ = ops.slice_norms(all);
}

void NormClip::clip(std::span<float> gradients) {
  norms_->clip(gradients.data(), max_norm_, norm_type_);
  clipped_ = true;
}

double NormClip::norm() const { return clipped_ ? norms_->total() : -1; }

void clip_by_value(const OptimizerOps& ops, std::span<const ParameterRange> slices, std::span<float> gradients,
                   double limit) {
  if (!(limit >= 0)) throw_error("train.clip_value: expected a number from 0, found {}", limit);
  for (const ParameterRange& slice : slices)
    ops.clamp(slice.count, gradients.subspan(slice.offset, slice.count).data(), static_cast<float>(limit));
}

}  // namespace lockstep
