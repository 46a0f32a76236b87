// The order of the samples in an epoch, as pure functions of a seed: PyTorch's DistributedSampler, and what its
// DataLoader(shuffle=True) draws from a generator.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/rng.h"
#include "data/data_plan.h"

namespace lockstep {

// The samples of one rank in one epoch: positions rank, rank + world_size, ... of the epoch's list (see data_plan.h),
// which is randperm from a fresh generator seeded seed + epoch, or 0 .. samples-1 without shuffle. uneven pad and drop
// are DistributedSampler(drop_last = false and true). Error: rank outside [0, world_size-1], a count out of range.
std::vector<int64_t> distributed_order(int64_t samples, int64_t world_size, int64_t rank, bool shuffle, uint64_t seed,
                                       int64_t epoch, Uneven uneven);

// One epoch of DataLoader(shuffle=...) without a generator of its own: takes base_seed (2 words) from the global
// generator and, with shuffle, the RandomSampler's seed (2 more), whose low 32 bits seed the permutation.
void dataloader_order(Generator& global, bool shuffle, std::span<int64_t> order);

// One complete epoch of DataLoader(shuffle=True, generator=own): base_seed, the permutation, and the second permutation
// that PyTorch draws and throws away when the epoch ends, all from `own`.
void dataloader_order_own_generator(Generator& own, std::span<int64_t> order);

// One epoch of RandomSampler(replacement=True) over `samples` rows; order.size() is num_samples.
void dataloader_order_with_replacement(Generator& global, int64_t samples, std::span<int64_t> order);

// Where the shuffle of a run comes from.
struct SamplerSettings {
  bool shuffle = true;
  uint64_t seed = 0;      // without `global`: epoch e is randperm from a generator seeded seed + e
  bool reshuffle = true;  // false: every epoch repeats epoch 0 (a script that forgets set_epoch)
  // With it, epoch e is what DataLoader(shuffle=True) draws the e-th time from this generator: its state when training
  // starts, the same on every rank. words_between_epochs: what the script draws there for other things, for example 2
  // for each pass over a loader of validation data.
  std::optional<Generator> global = {};
  uint64_t words_between_epochs = 0;
};

// The list of an epoch, all ranks together, without padding: order.size() is the number of samples. Allocates nothing.
void epoch_order(const SamplerSettings& settings, int64_t epoch, std::span<int64_t> order);

}  // namespace lockstep
