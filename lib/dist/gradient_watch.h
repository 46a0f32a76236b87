// Finds out which rank's gradient of which parameter brought the NaN. One pass over the gradients a step, for those who
// ask for it.
#pragma once

#include <string>

#include "backend/optimizer_ops.h"
#include "comm/wire_format.h"
#include "dist/bucket_observer.h"
#include "nn/parameter_store.h"

namespace lockstep {

class GradientWatch final : public BucketObserver {
 public:
  // wire: how the gradients will travel; what overflows there is as bad as NaN.
  GradientWatch(const ParameterStore& store, const OptimizerOps& ops, WireFormat wire);

  void begin_step() { bad_ = nullptr, looked_ = false; }
  void before_sum(const Bucket& bucket, std::span<const float> gradients) override;
  void look_at_all();  // where nothing is sent: a single rank, or ranks that don't reduce
  bool looked() const { return looked_; }

  // The first parameter found bad in this step; null: none.
  const Parameter* bad_parameter() const { return bad_; }
  // "the gradient of 4.weight is not finite", "... overflows fp16".
  std::string describe() const;

 private:
  bool is_fine(size_t offset, size_t count) const;
  void find_in(const Parameter& parameter);

  const ParameterStore& store_;
  const OptimizerOps& ops_;
  WireFormat wire_;
  const Parameter* bad_ = nullptr;
  bool overflow_ = false;  // finite, but not on the wire
  bool looked_ = false;
};

}  // namespace lockstep
