// When gradients are reduced: a policy the trainer's loop doesn't see. Micro-steps before the last of an accumulation
// window launch nothing (sync suppression). In the last one a bucket is launched as soon as its last gradient is final,
// in one fixed order on every rank: a bucket that is complete early waits for those before it.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "dist/bucket_plan.h"
#include "dist/gradient_watch.h"
#include "nn/graph.h"

namespace lockstep {

struct SyncSettings {
  BucketCaps caps = {};
  bool sync = true;            // false: nothing is ever reduced, the replicas drift apart (to show that they do)
  bool overlap = true;         // launch during backward; false: all buckets after it. The sums have the same bits
  bool average_ranks = false;  // every gradient times float(1 / world size) before the sum, as PyTorch's DDP
  WireFormat wire = WireFormat::fp32;  // how gradients travel; see Communicator::all_reduce_sum_in
};

class GradientSynchronizer final : public GradientListener {
 public:
  GradientSynchronizer(ParameterStore& store, Communicator& communicator, const OptimizerOps& ops,
                       const SyncSettings& settings);

  // Is shown every bucket just before its launch; null: nobody. Outlives this object.
  void set_watch(GradientWatch* watch) { watch_ = watch; }
  void begin_micro_step(int index, int count);  // index of count in the window
  void on_ready(ParameterId id) override;
  // Ends the window: afterwards the gradient arena holds the sum over ranks, the same bits on all. A rank that had no
  // samples in the window takes part with zeros (its arena must be zero), one that had none in the last micro-step with
  // what the others gave it.
  void finish();

  int64_t all_reduces() const { return all_reduces_; }        // buckets reduced so far
  int64_t launched_early() const { return launched_early_; }  // those of them launched before finish()
  size_t buckets() const { return buckets_.size(); }

 private:
  void launch();  // the next bucket

  ParameterStore& store_;
  Communicator& communicator_;
  const OptimizerOps& ops_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by ParameterId
  std::vector<size_t> missing_;    // by bucket: gradients that are not final yet
  bool sync_, overlap_;
  WireFormat wire_;
  GradientWatch* watch_ = nullptr;
  float factor_;  // of this rank's gradients in the sum
  bool last_micro_step_ = false;
  size_t ready_ = 0;     // gradients final in this window
  size_t launched_ = 0;  // buckets of this window
  int64_t all_reduces_ = 0, launched_early_ = 0;
};

}  // namespace lockstep
