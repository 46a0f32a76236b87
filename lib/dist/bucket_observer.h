// Someone who looks at this rank's own gradients before they are summed with those of the others: once summed, nobody
// can tell what each rank brought.
#pragma once

#include <span>

#include "dist/bucket_plan.h"

namespace lockstep {

class BucketObserver {
 public:
  virtual ~BucketObserver() = default;
  // gradients: the bucket's, final for one (virtual) rank's window, as they are about to be sent.
  virtual void before_sum(const Bucket& bucket, std::span<const float> gradients) = 0;
};

}  // namespace lockstep
