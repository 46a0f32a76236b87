// When gradients are reduced: a policy the trainer's loop doesn't see. Micro-steps before the last of an accumulation
// window launch nothing (sync suppression). In the last one a bucket is launched as soon as its last gradient is final,
// in one fixed order on every rank: a bucket that is complete early waits for those before it. A rank that stands for
// several virtual ranks has a window for each, and launches in the last window of the step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "dist/bucket_observer.h"
#include "dist/bucket_plan.h"
#include "dist/partial_sums.h"
#include "nn/graph.h"

namespace lockstep {

struct SyncSettings {
  BucketCaps caps = {};
  bool sync = true;            // false: nothing is ever reduced, the replicas drift apart (to show that they do)
  bool overlap = true;         // launch during backward; false: all buckets after it. The sums have the same bits
  bool average_ranks = false;  // every gradient times float(1 / virtual ranks) before the sum, as PyTorch's DDP
  int64_t windows = 1;         // virtual ranks of each rank, a power of two
  WireFormat wire = WireFormat::fp32;  // how gradients travel; see Communicator::all_reduce_sum_in
  bool sums = true;                    // false: gradients are made ready for them, ShardedUpdate does the rest
};

class GradientSynchronizer final : public GradientListener {
 public:
  GradientSynchronizer(ParameterStore& store, Communicator& communicator, const OptimizerOps& ops,
                       const SyncSettings& settings);

  // Is shown every bucket of every window, as it is about to be added up. Outlives this object; null: nobody.
  void observe(BucketObserver* observer) {
    if (observer != nullptr) observers_.push_back(observer);
  }
  void begin_micro_step(int index, int count);  // index of count in the window
  void on_ready(ParameterId id) override;
  // Ends a window. After the last one of the step the gradient arena holds the sum over all (virtual) ranks, the same
  // bits on all (without settings.sums what this rank adds to it); after the others it is scratch. One that had no
  // samples in its window takes part with zeros (the arena must be zero), one that had none in the last micro-step with
  // what the others gave it.
  void finish();
  // A recording of a window's last micro-step and of finish() was started (backend/recorder.h): in place of both.
  void repeat_window();

  int64_t all_reduces() const { return all_reduces_; }        // buckets reduced so far
  int64_t launched_early() const { return launched_early_; }  // those of them launched before finish()
  size_t buckets() const { return buckets_.size(); }

 private:
  void launch();  // the next bucket
  bool last_window() const { return window_ + 1 == windows_; }

  ParameterStore& store_;
  Communicator& communicator_;
  const OptimizerOps& ops_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by ParameterId
  std::vector<size_t> missing_;    // by bucket: gradients that are not final yet
  bool prepares_;                  // without sums
  bool sync_, overlap_;
  WireFormat wire_;
  std::vector<BucketObserver*> observers_;
  float factor_;  // of a virtual rank's gradients in the sum
  std::optional<PartialSums> partial_sums_;
  int64_t windows_, window_ = 0;  // in a step
  bool last_micro_step_ = false;
  size_t ready_ = 0;     // gradients final in this window
  size_t launched_ = 0;  // buckets of this window
  int64_t all_reduces_ = 0, launched_early_ = 0;
};

}  // namespace lockstep
