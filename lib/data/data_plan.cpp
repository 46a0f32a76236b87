// The arithmetic of data/data_plan.h. All positions of an epoch are one line, dealt to the ranks in turn, so sums over
// ranks are lengths of runs on that line and need no loop over ranks.
#include "data/data_plan.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

static int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_error("the plan of the data overflows 64 bits: {} times {}", a, b);
  return result;
}

static void check_positive(const char* name, int64_t value) {
  if (value < 1) throw_error("{} must be a positive integer, found {}", name, value);
}

constexpr int64_t kMost = int64_t{1} << 48;  // of samples, and of a global batch: keeps every sum below 2^63

static const DataPlanSpec& checked(const DataPlanSpec& spec, int64_t first) {
  if (spec.samples < 0 || spec.samples > kMost) throw_error("samples must lie in 0 .. 2^48, found {}", spec.samples);
  check_positive("world_size", spec.world_size);
  check_positive("batch_size", spec.batch_size);
  check_positive("accumulate", spec.accumulate);
  if (spec.epochs < 0) throw_error("epochs must not be negative, found {}", spec.epochs);
  if (spec.max_steps) check_positive("max_steps", *spec.max_steps);
  if (product(product(spec.world_size, spec.batch_size), spec.accumulate) > kMost) {
    throw_error("batch_size {} x world_size {} x accumulate {} is more than 2^48 samples", spec.batch_size,
                spec.world_size, spec.accumulate);
  }
  // A padded epoch ends less than one round after its samples.
  if (first < 0 || first > 2 * kMost) throw_error("position in the epoch: expected 0 .. 2^49, found {}", first);
  return spec;
}

// Length of the list that is dealt to the ranks.
static int64_t dealt_samples(int64_t samples, int64_t world_size, Uneven uneven) {
  if (uneven == Uneven::pad) return ceil_div(samples, world_size) * world_size;
  if (uneven == Uneven::drop) return samples / world_size * world_size;
  return samples;
}

Uneven parse_uneven(std::string_view text) {
  if (text == "exact") return Uneven::exact;
  if (text == "pad") return Uneven::pad;
  if (text == "drop") return Uneven::drop;
  throw_error("uneven: expected exact, pad or drop, found '{}'", text);
}

EpochPlan::EpochPlan(const DataPlanSpec& spec, int64_t first)
    : world_size_(checked(spec, first).world_size),
      batch_size_(spec.batch_size),
      accumulate_(spec.accumulate),
      first_(first),
      remaining_(std::max<int64_t>(spec.samples - first, 0)),
      dealt_(dealt_samples(remaining_, world_size_, spec.uneven)),
      micro_batch_(batch_size_ * world_size_) {
  micro_steps_ = spec.drop_last ? dealt_ / micro_batch_ : ceil_div(dealt_, micro_batch_);
  if (!spec.own.empty()) {
    own_.emplace(spec, first);
    dealt_ = remaining_;
    micro_steps_ = own_->micro_steps();
  }
  steps_ = ceil_div(micro_steps_, accumulate_);
}

int64_t EpochPlan::rank_samples(int64_t rank) const {
  if (rank < 0 || rank >= world_size_) return 0;
  if (own_) return own_->samples(rank);
  return dealt_ / world_size_ + (rank < dealt_ % world_size_ ? 1 : 0);
}

int64_t EpochPlan::rank_consumed(int64_t rank) const {
  if (own_) return rank < 0 || rank >= world_size_ ? 0 : own_->before(rank, micro_steps_);
  return std::min(micro_steps_ * batch_size_, rank_samples(rank));
}

int64_t EpochPlan::consumed() const {
  return own_ ? own_->before(micro_steps_) : std::min(micro_steps_ * micro_batch_, dealt_);
}

int64_t EpochPlan::padding() const { return std::max<int64_t>(dealt_ - remaining_, 0); }

int64_t EpochPlan::dropped() const { return std::max<int64_t>(remaining_ - consumed(), 0); }

int64_t EpochPlan::local_count(int64_t rank, int64_t micro_step) const {
  if (micro_step < 0 || micro_step >= micro_steps_) return 0;
  if (own_ && rank >= 0 && rank < world_size_)
    return own_->before(rank, micro_step + 1) - own_->before(rank, micro_step);
  return std::clamp<int64_t>(rank_samples(rank) - micro_step * batch_size_, 0, batch_size_);
}

int64_t EpochPlan::micro_step_samples(int64_t micro_step) const {
  if (micro_step < 0 || micro_step >= micro_steps_) return 0;
  if (own_) return own_->before(micro_step + 1) - own_->before(micro_step);
  return std::min(dealt_ - micro_step * micro_batch_, micro_batch_);
}

int64_t EpochPlan::window_size(int64_t step) const {
  if (step < 0 || step >= steps_) return 0;
  return std::min(micro_steps_ - step * accumulate_, accumulate_);
}

int64_t EpochPlan::step_samples(int64_t step) const {
  if (step < 0 || step >= steps_) return 0;
  if (own_) return own_->before(step * accumulate_ + window_size(step)) - own_->before(step * accumulate_);
  return std::min(consumed() - step * global_batch(), global_batch());
}

int64_t EpochPlan::position_after(int64_t step) const {
  if (step < 0 || step >= steps_) return 0;
  if (own_) return first_ + own_->before(step * accumulate_ + window_size(step));
  return first_ + step * global_batch() + step_samples(step);
}

bool EpochPlan::empty_on_some_rank() const {
  if (own_) return own_->some_rank_is_empty();
  return micro_steps_ == 0 || local_count(world_size_ - 1, 0) == 0;
}

DataPlan::DataPlan(const DataPlanSpec& spec)
    : spec_(spec), epoch_(spec), total_steps_(product(spec.epochs, epoch_.steps())) {
  if (spec.max_steps) total_steps_ = std::min(total_steps_, *spec.max_steps);
}

}  // namespace lockstep
