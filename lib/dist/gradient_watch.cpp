#include "dist/gradient_watch.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {

GradientWatch::GradientWatch(const ParameterStore& store, const OptimizerOps& ops, WireFormat wire)
    : store_(store), ops_(ops), wire_(wire) {}

// NaN compares as false.
bool GradientWatch::is_fine(size_t offset, size_t count) const {
  return ops_.max_abs(count, store_.gradients().data() + offset) < overflow_of(wire_);
}

void GradientWatch::find_in(const Parameter& parameter) {
  if (bad_ != nullptr || is_fine(parameter.offset, parameter.count)) return;
  bad_ = &parameter;
  overflow_ = std::isfinite(ops_.max_abs(parameter.count, store_.gradients().data() + parameter.offset));
}

void GradientWatch::before_sum(const Bucket& bucket, std::span<const float> /*gradients*/) {
  looked_ = true;
  if (bad_ != nullptr || is_fine(bucket.offset, bucket.count)) return;
  for (const ParameterId id : bucket.members) find_in(store_.parameters()[static_cast<size_t>(id)]);
}

void GradientWatch::look_at_all() {
  looked_ = true;
  if (is_fine(0, store_.gradients().size())) return;
  for (const ParameterId id : store_.arena_order()) find_in(store_.parameters()[static_cast<size_t>(id)]);
}

std::string GradientWatch::describe() const {
  if (bad_ == nullptr) return "";
  return overflow_ ? fmt::format("the gradient of {} overflows {}", bad_->name, name(wire_))
                   : fmt::format("the gradient of {} is not finite", bad_->name);
}

}  // namespace lockstep
