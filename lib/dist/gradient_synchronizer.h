// When gradients are reduced: a policy the trainer's loop doesn't see. Micro-steps before the last of an accumulation
// window launch nothing (sync suppression); the last one's buckets are reduced in one fixed order on every rank.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "dist/bucket_plan.h"
#include "nn/graph.h"

namespace lockstep {

class GradientSynchronizer final : public GradientListener {
 public:
  // sync false: nothing is ever reduced, the replicas drift apart (to show that they do).
  GradientSynchronizer(ParameterStore& store, Communicator& communicator, const BucketCaps& caps, bool sync);

  void begin_micro_step(int index, int count);  // index of count in the window
  void on_ready(ParameterId id) override;
  // Ends the window: afterwards the gradient arena holds the sum over ranks, the same bits on all. A rank that had no
  // samples in the window takes part with zeros (its arena must be zero).
  void finish();

  int64_t all_reduces() const { return all_reduces_; }
  size_t buckets() const { return buckets_.size(); }

 private:
  ParameterStore& store_;
  Communicator& communicator_;
  std::vector<Bucket> buckets_;
  bool sync_;
  bool last_micro_step_ = false;
  size_t ready_ = 0;  // gradients final in this window
  int64_t all_reduces_ = 0;
};

}  // namespace lockstep
