// Walks the epoch's list (data/sampler.h): a micro-batch is every world_size-th position of the next run of the list.
#include "data/sampler.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace lockstep {

Sampler::Sampler(const DataPlanSpec& spec, int64_t rank, SamplerSettings settings)
    : spec_(spec), rank_(rank), settings_(std::move(settings)) {
  const EpochPlan checked(spec);
  if (rank < 0 || rank >= spec.world_size) {
    throw_error("invalid rank {}: the rank must lie in the interval [0, {}]", rank, spec.world_size - 1);
  }
  order_.resize(static_cast<size_t>(spec.samples));
  // A rank never has more rows than this, however large batch_size is.
  rows_.resize(static_cast<size_t>(std::min(spec.batch_size, checked.rank_samples(0))));
  set_epoch(0);
}

void Sampler::set_epoch(int64_t epoch) {
  epoch_order(settings_, epoch, order_);
  epoch_ = epoch;
  seek(0);
}

void Sampler::seek(int64_t position) {
  const EpochPlan rest(spec_, position);
  position_ = position;
  end_ = position + rest.dealt();
}

int64_t Sampler::after(int64_t position, int64_t batch) const {
  const int64_t all_ranks = batch * spec_.world_size;
  if (spec_.drop_last && end_ - position < all_ranks) return position;
  return std::min(position + all_ranks, end_);
}

std::span<const int64_t> Sampler::deal(int64_t rank, int64_t position, int64_t batch) {
  const int64_t stop = after(position, batch);
  size_t count = 0;
  for (int64_t at = position + rank; at < stop; at += spec_.world_size) {
    rows_[count++] = order_[static_cast<size_t>(at % spec_.samples)];  // past the end: padding, from the head again
  }
  return {rows_.data(), count};
}

std::span<const int64_t> Sampler::next(int64_t batch) {
  if (batch < 1 || batch > spec_.batch_size) {
    throw_error("sampler: expected a batch of 1 to {} rows, found {}", spec_.batch_size, batch);
  }
  const auto rows = deal(rank_, position_, batch);
  position_ = after(position_, batch);
  return rows;
}

std::span<const int64_t> Sampler::peek(int64_t rank, int64_t micro_batches) {
  if (rank < 0 || rank >= spec_.world_size)
    throw_error("invalid rank {}: the rank must lie in the interval [0, {}]", rank, spec_.world_size - 1);
  int64_t position = position_;
  for (int64_t i = 0; i < micro_batches; ++i) position = after(position, spec_.batch_size);
  return deal(rank, position, spec_.batch_size);
}

void Sampler::skip(int64_t micro_batches) {
  for (int64_t i = 0; i < micro_batches; ++i) position_ = after(position_, spec_.batch_size);
}

}  // namespace lockstep
