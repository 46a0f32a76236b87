#include "dist/bucket_plan.h"

namespace lockstep {

std::vector<Bucket> plan_buckets(const ParameterStore& store, const BucketCaps& caps) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (ParameterId id : store.arena_order()) {
    const Parameter& p = store.parameters()[static_cast<size_t>(id)];
    if (!p.trainable) continue;  // frozen ones come last and have no gradient
    if (!open) buckets.push_back({.offset = p.offset});
    Bucket& bucket = buckets.back();
    bucket.members.push_back(id);
    bucket.count = p.offset + p.count - bucket.offset;
    const size_t cap = buckets.size() == 1 ? caps.first_bytes : caps.bytes;
    open = bucket.count * sizeof(float) < cap;
  }
  return buckets;
}

}  // namespace lockstep
