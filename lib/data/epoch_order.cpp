// PyTorch's epoch orders (data/epoch_order.h): which words are drawn, in which order, and what they seed.
#include "data/epoch_order.h"

#include <numeric>

#include "core/error.h"

namespace lockstep {

static constexpr uint64_t kSeedWords = 2;  // base_seed and the sampler's seed are int64 draws

std::vector<int64_t> distributed_order(int64_t samples, int64_t world_size, int64_t rank, bool shuffle, uint64_t seed,
                                       int64_t epoch, Uneven uneven) {
  if (rank < 0 || rank >= world_size) {
    throw_error("invalid rank {}: the rank must lie in the interval [0, {}]", rank, world_size - 1);
  }
  const EpochPlan plan({.samples = samples, .world_size = world_size, .uneven = uneven});
  std::vector<int64_t> list(static_cast<size_t>(samples));
  epoch_order({.shuffle = shuffle, .seed = seed}, epoch, list);
  std::vector<int64_t> local(static_cast<size_t>(plan.rank_samples(rank)));
  size_t position = static_cast<size_t>(rank);
  for (int64_t& row : local) {
    row = list[position % list.size()];  // past the end: padding, from the head again
    position += static_cast<size_t>(world_size);
  }
  return local;
}

void dataloader_order(Generator& global, bool shuffle, std::span<int64_t> order) {
  global.discard(kSeedWords);  // base_seed, drawn for every pass over a loader, with or without workers
  if (shuffle) {
    Generator sampler(static_cast<uint64_t>(global.random_int64()));
    sampler.randperm_into(order);
  } else {
    std::iota(order.begin(), order.end(), int64_t{0});
  }
}

void dataloader_order_own_generator(Generator& own, std::span<int64_t> order) {
  own.discard(kSeedWords);
  own.randperm_into(order);
  if (!order.empty()) own.discard(order.size() - 1);
}

void dataloader_order_with_replacement(Generator& global, int64_t samples, std::span<int64_t> order) {
  global.discard(kSeedWords);
  Generator sampler(static_cast<uint64_t>(global.random_int64()));
  for (int64_t& row : order) row = sampler.randint(0, samples);
}

void epoch_order(const SamplerSettings& settings, int64_t epoch, std::span<int64_t> order) {
  if (epoch < 0) throw_error("epoch: expected 0 or more, found {}", epoch);
  const uint64_t shuffled_as = settings.reshuffle ? static_cast<uint64_t>(epoch) : 0;
  if (!settings.shuffle) {
    std::iota(order.begin(), order.end(), int64_t{0});
  } else if (settings.global) {
    Generator global = *settings.global;
    global.discard(shuffled_as * (2 * kSeedWords + settings.words_between_epochs));
    dataloader_order(global, true, order);
  } else {
    Generator(settings.seed + shuffled_as).randperm_into(order);
  }
}

}  // namespace lockstep
