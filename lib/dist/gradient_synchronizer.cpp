#include "dist/gradient_synchronizer.h"

#include "core/error.h"

namespace lockstep {

GradientSynchronizer::GradientSynchronizer(ParameterStore& store, Communicator& communicator, const BucketCaps& caps,
                                           bool sync)
    : store_(store),
      communicator_(communicator),
      buckets_(plan_buckets(store, caps)),
      sync_(sync && communicator.size() > 1) {}

void GradientSynchronizer::begin_micro_step(int index, int count) {
  last_micro_step_ = index + 1 == count;
  ready_ = 0;
}

void GradientSynchronizer::on_ready(ParameterId) {
  if (last_micro_step_) ++ready_;
}

void GradientSynchronizer::finish() {
  if (!last_micro_step_) throw_error("gradients were asked for before the last micro-step of the window");
  if (ready_ != 0 && ready_ != store_.parameters().size())
    throw_error("backward finished {} of {} gradients", ready_, store_.parameters().size());
  last_micro_step_ = false;
  if (!sync_) return;
  for (const Bucket& bucket : buckets_) {
    communicator_.all_reduce_sum(store_.gradients().subspan(bucket.offset, bucket.count));
    ++all_reduces_;
  }
}

}  // namespace lockstep
