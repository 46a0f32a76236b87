// Buckets: consecutive slices of the gradient arena, in the order in which backward finishes them, each reduced by one
// all-reduce. A parameter is never split; a bucket closes when it reaches its cap (so it may overshoot). Frozen
// parameters are in none.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/parameter_store.h"

namespace lockstep {

struct BucketCaps {
  size_t first_bytes = 1 << 20;  // of the bucket that is ready first
  size_t bytes = 25 << 20;
};

struct Bucket {
  size_t offset = 0, count = 0;  // floats in the gradient arena, alignment gaps included
  std::vector<ParameterId> members;
};

std::vector<Bucket> plan_buckets(const ParameterStore& store, const BucketCaps& caps);

}  // namespace lockstep
