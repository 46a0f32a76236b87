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
      prepares_(!settings.sums),
      sync_(settings.sync && settings.sums && communicator.size() > 1),
      overlap_(settings.overlap && sync_ && buckets_.size() > 1),
      wire_(settings.wire),
      factor_(settings.average_ranks
                  ? static_cast<float>(1.0 / static_cast<double>(communicator.size() * settings.windows))
                  : 1.0f),
      windows_(settings.windows) {
  if (windows_ > 1) partial_sums_.emplace(store.gradients().size(), windows_, ops, store.memory());
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
  if (!overlap_ || !last_window()) return;
  --missing_[bucket_of_[static_cast<size_t>(id)]];
  while (launched_ < buckets_.size() && missing_[launched_] == 0) {
    launch();
    ++launched_early_;
  }
  communicator_.poll_sums();
}

void GradientSynchronizer::finish() {
  if (!last_micro_step_) throw_error("gradients were asked for before the last micro-step of the window");
  if (ready_ != 0 && ready_ != store_.trainable_parameters())
    throw_error("backward finished {} of {} gradients", ready_, store_.trainable_parameters());
  last_micro_step_ = false;
  if (!last_window()) {
    const std::span<float> gradients = store_.gradients();
    if (factor_ != 1.0f) ops_.scale(gradients.size(), gradients.data(), factor_);
    for (const Bucket& bucket : buckets_)
      for (BucketObserver* observer : observers_)
        observer->before_sum(bucket, gradients.subspan(bucket.offset, bucket.count));
    partial_sums_->add(gradients);
    ++window_;
    return;
  }
  if (!sync_ && !partial_sums_ && !prepares_) return;
  while (launched_ < buckets_.size()) launch();
  if (overlap_) communicator_.finish_sums();
  if (partial_sums_) partial_sums_->restart();
  window_ = 0;
  communicator_.activity().bucket(-1);
}

void GradientSynchronizer::repeat_window() {
  last_micro_step_ = false;
  const auto launched = static_cast<int64_t>(buckets_.size());
  if (sync_) all_reduces_ += launched;
  if (overlap_) launched_early_ += launched;
}

void GradientSynchronizer::launch() {
  communicator_.activity().bucket(static_cast<int64_t>(launched_));
  const Bucket& bucket = buckets_[launched_++];
  const auto gradients = store_.gradients().subspan(bucket.offset, bucket.count);
  if (factor_ != 1.0f) ops_.scale(gradients.size(), gradients.data(), factor_);
  for (BucketObserver* observer : observers_) observer->before_sum(bucket, gradients);
  if (partial_sums_) partial_sums_->complete(gradients, bucket.offset);
  if (!sync_) return;
  if (overlap_) {
    communicator_.start_sum_in(wire_, gradients);
  } else {
    communicator_.all_reduce_sum_in(wire_, gradients);
  }
  ++all_reduces_;
}

}  // namespace lockstep
