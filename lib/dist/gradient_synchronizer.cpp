#include "dist/gradient_synchronizer.h"

#include <utility>

#include "core/error.h"

namespace lockstep {

// A single bucket is complete when backward ends: there is nothing to launch it beside.
GradientSynchronizer::GradientSynchronizer(ParameterStore& store, Communicator& communicator, const OptimizerOps& ops,
                                           const SyncSettings& settings)
    : store_(store),
      communicator_(communicator),
      ops_(ops),
      buckets_(plan_buckets(store, settings.caps)),
      bucket_of_(store.parameters().size()),
      missing_(buckets_.size()),
      sync_(settings.sync && communicator.size() > 1),
      overlap_(settings.overlap && sync_ && buckets_.size() > 1),
      wire_(settings.wire),
      factor_(settings.average_ranks ? static_cast<float>(1.0 / communicator.size()) : 1.0f) {
  std::vector<std::string> names;
  for (const Bucket& bucket : buckets_)
    names.push_back(store.parameters()[static_cast<size_t>(bucket.members.front())].name);
  communicator.activity().name_buckets(std::move(names));
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    for (const ParameterId id : buckets_[bucket].members) bucket_of_[static_cast<size_t>(id)] = bucket;
}

void GradientSynchronizer::begin_micro_step(int index, int count) {
  last_micro_step_ = index + 1 == count;
  ready_ = launched_ = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) missing_[bucket] = buckets_[bucket].members.size();
}

void GradientSynchronizer::on_ready(ParameterId id) {
  if (!last_micro_step_) return;
  ++ready_;
  if (!overlap_) return;
  --missing_[bucket_of_[static_cast<size_t>(id)]];
  while (launched_ < buckets_.size() && missing_[launched_] == 0) {
    launch();
    ++launched_early_;
  }
  communicator_.poll_sums();
}

void GradientSynchronizer::finish() {
  if (!last_micro_step_) throw_error("gradients were asked for before the last micro-step of the window");
  if (ready_ != 0 && ready_ != store_.parameters().size())
    throw_error("backward finished {} of {} gradients", ready_, store_.parameters().size());
  last_micro_step_ = false;
  if (!sync_) return;
  while (launched_ < buckets_.size()) launch();
  if (overlap_) communicator_.finish_sums();
  communicator_.activity().bucket(-1);
}

void GradientSynchronizer::launch() {
  communicator_.activity().bucket(static_cast<int64_t>(launched_));
  const Bucket& bucket = buckets_[launched_++];
  const auto gradients = store_.gradients().subspan(bucket.offset, bucket.count);
  if (factor_ != 1.0f) ops_.scale(gradients.size(), gradients.data(), factor_);
  if (watch_ != nullptr) watch_->look(bucket);
  if (overlap_) {
    communicator_.start_sum_in(wire_, gradients);
  } else {
    communicator_.all_reduce_sum_in(wire_, gradients);
  }
  ++all_reduces_;
}

}  // namespace lockstep
