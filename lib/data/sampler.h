// Which rows a rank reads next. Its only state is (epoch, position): nothing about the order is hidden, so a run
// resumes from these two integers, also with another world_size or batch_size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/data_plan.h"
#include "data/epoch_order.h"

namespace lockstep {

class Sampler {
 public:
  // Starts at epoch 0, position 0. All memory is reserved here: 8 bytes a sample and 8 a row of a batch.
  // Error: rank outside [0, world_size-1], or what EpochPlan rejects.
  Sampler(const DataPlanSpec& spec, int64_t rank, SamplerSettings settings);

  // Makes the order of an epoch and goes to its start. Error: negative epoch.
  void set_epoch(int64_t epoch);
  // Goes on from a position of the current epoch; the rest is dealt anew to the ranks (EpochPlan's `first`).
  // Error: out of range.
  void seek(int64_t position);

  // The rows of this rank's next micro-batch, at most `batch`; valid until the next call. All ranks call it equally
  // often with equal `batch`: EpochPlan::micro_steps() times an epoch. Empty when this rank has no row left (exact
  // mode, while others may have one), and at the end of the epoch. Error: batch outside [1, batch_size].
  std::span<const int64_t> next(int64_t batch);
  std::span<const int64_t> next() { return next(spec_.batch_size); }
  // The rows of any rank's micro-batch, so many whole micro-batches from here, which is where the sampler stays; valid
  // until the next call. skip: goes on by so many. Error: rank outside [0, world_size-1].
  std::span<const int64_t> peek(int64_t rank, int64_t micro_batches);
  void skip(int64_t micro_batches);

  int64_t epoch() const { return epoch_; }
  // Positions of the epoch's list consumed by all ranks together, padding included: what a checkpoint stores.
  int64_t position() const { return position_; }

 private:
  std::span<const int64_t> deal(int64_t rank, int64_t position, int64_t batch);
  int64_t after(int64_t position, int64_t batch) const;  // where the next micro-batch starts

  DataPlanSpec spec_;
  int64_t rank_;
  SamplerSettings settings_;
  std::vector<int64_t> order_;  // the epoch's list, all ranks
  std::vector<int64_t> rows_;   // what next() hands out
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  int64_t end_ = 0;  // one past the last position dealt
};

}  // namespace lockstep
