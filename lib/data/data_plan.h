// How many samples, micro-steps and optimizer steps a run has on every rank: the one place that counts. `lockstep plan`
// prints these numbers and the trainer runs them. Arithmetic only: every query is O(1), whatever the data set's size.
//
// The order of an epoch is a list of samples. Position q of that list belongs to rank q mod world_size (the strided
// shards of PyTorch's DistributedSampler), a micro-step takes up to batch_size positions of each rank, so micro-step m
// of all ranks together is the run of positions [m * B, (m + 1) * B), B = batch_size * world_size. Whatever the split
// of a global batch, an optimizer step therefore covers the same samples.
//
// Where every rank has data of its own there is no such list: own_shards.h counts, and queries are loops over ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "data/own_shards.h"

namespace lockstep {

// What happens to the samples that do not divide evenly among the ranks.
enum class Uneven : uint8_t {
  exact,  // every sample once; some ranks have one less, and none at all where samples < world_size
  pad,    // the list is repeated from its head until it divides (DistributedSampler, drop_last=False)
  drop,   // its tail is left out (DistributedSampler, drop_last=True)
};
Uneven parse_uneven(std::string_view text);  // Error: neither exact, pad nor drop

struct DataPlanSpec {
  int64_t samples = 0;     // of the data set
  int64_t world_size = 1;  // ranks
  int64_t batch_size = 1;  // per rank and micro-step
  int64_t accumulate = 1;  // micro-steps per optimizer step
  int64_t epochs = 1;
  Uneven uneven = Uneven::exact;
  bool drop_last = false;  // a micro-step counts only if every rank has a full batch for it (DataLoader's drop_last)
  std::optional<int64_t> max_steps = {};  // optimizer steps after which the run ends, in whichever epoch
  std::vector<int64_t> own = {};        // samples of each rank, where each has data of its own; `samples` is their sum
  EarlyEnd early_end = EarlyEnd::join;  // then
};

// The counts of one epoch. Micro-steps m count from 0, so do optimizer steps k; queries outside the epoch give 0.
class EpochPlan {
 public:
  // The rest of an epoch of which `first` positions have been consumed; 0 for a whole epoch. After a resume the rest is
  // dealt anew, as if it were a list of its own, so world_size and batch_size may differ from those before.
  // Error: a field of spec or `first` out of range.
  explicit EpochPlan(const DataPlanSpec& spec, int64_t first = 0);

  int64_t dealt() const { return dealt_; }    // positions: the samples (exact), rounded up (pad) or down (drop)
  int64_t rank_samples(int64_t rank) const;   // positions dealt to a rank
  int64_t rank_consumed(int64_t rank) const;  // those of them that drop_last does not leave out
  int64_t padding() const;                    // positions that repeat a sample so that ranks are equal
  int64_t dropped() const;                    // samples of this epoch that no rank trains on
  int64_t consumed() const;                   // positions trained on, all ranks together, repeated ones included

  int64_t micro_steps() const { return micro_steps_; }  // the same on every rank
  int64_t steps() const { return steps_; }              // optimizer steps: windows of `accumulate` micro-steps
  int64_t global_batch() const { return micro_batch_ * accumulate_; }

  int64_t local_count(int64_t rank, int64_t micro_step) const;  // samples of one rank, 0 where it has run out
  int64_t micro_step_samples(int64_t micro_step) const;         // the same, summed over ranks
  int64_t window_size(int64_t step) const;   // micro-steps of an optimizer step; the last may be short
  int64_t step_samples(int64_t step) const;  // samples of an optimizer step, summed over ranks
  int64_t position_after(
      int64_t step) const;  // positions of the epoch consumed once this step is done, `first` included

  bool empty_on_every_rank() const { return micro_steps_ == 0; }
  bool empty_on_some_rank() const;

 private:
  int64_t world_size_, batch_size_, accumulate_;
  int64_t first_;        // positions consumed before
  int64_t remaining_;    // samples left from there
  int64_t dealt_;        // positions dealt of them
  int64_t micro_batch_;  // positions of one full micro-step, all ranks together
  int64_t micro_steps_, steps_;
  std::optional<OwnShards> own_;
};

// The counts of a run: `epochs` equal epochs, cut off after max_steps.
class DataPlan {
 public:
  explicit DataPlan(const DataPlanSpec& spec);  // Error: a field out of range, or more than 2^63 steps

  const DataPlanSpec& spec() const { return spec_; }
  const EpochPlan& epoch() const { return epoch_; }
  int64_t total_steps() const { return total_steps_; }  // optimizer steps of the run, from its start
  EpochPlan rest_of_epoch(int64_t position) const { return EpochPlan(spec_, position); }

 private:
  DataPlanSpec spec_;
  EpochPlan epoch_;
  int64_t total_steps_;
};

}  // namespace lockstep
