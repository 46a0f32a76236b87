#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace lockstep {

static void check_ranges(const std::vector<ParameterGroup>& groups, size_t arena_size) {
  std::vector<std::pair<size_t, size_t>> spans;  // begin, end
  for (const ParameterGroup& group : groups)
    for (const ParameterRange& range : group.ranges) {
      if (range.offset > arena_size || range.count > arena_size - range.offset)
        throw_error("optimizer: {}: range {}+{} lies outside the arena of {} floats", group.name, range.offset,
                    range.count, arena_size);
      spans.emplace_back(range.offset, range.offset + range.count);
    }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second)
      throw_error("optimizer: two ranges both hold float {} of the arena", spans[i].first);
}

Optimizer::Optimizer(OptimizerInit init)
    : settings_(std::move(init.settings)),
      groups_(std::move(init.groups)),
      arena_size_(init.arena_size),
      ops_(init.ops),
      allocate_(std::move(init.allocate)) {
  check_ranges(groups_, arena_size_);
  const bool beta1 = settings_.kind == "adam" || settings_.kind == "adamw" || settings_.kind == "lamb";
  momentum_.assign(groups_.size(), beta1 ? settings_.beta1 : settings_.momentum);
  lr_.assign(groups_.size(), 0);
  for (int i = 0; i < groups(); ++i) set_lr(i, group(i).lr);
  for (const ParameterGroup& group : groups_)
    if (!(group.weight_decay >= 0) || std::isinf(group.weight_decay))
      throw_error("optimizer: {}: weight_decay: expected a number from 0, found {}", group.name, group.weight_decay);
}

float* Optimizer::add_state(std::string_view name) {
  buffers_.push_back(allocate_(arena_size_ * sizeof(float)));
  state_.push_back({name, buffers_.back().as<float>()});
  return buffers_.back().as<float>().data();
}

float* Optimizer::add_scratch(size_t floats) {
  buffers_.push_back(allocate_(floats * sizeof(float)));
  return buffers_.back().as<float>().data();
}

std::unique_ptr<SliceNorms> Optimizer::range_norms() const {
  std::vector<NormSlice> slices;
  for (const ParameterGroup& group : groups_)
    for (const ParameterRange& range : group.ranges)
      slices.push_back({range.offset, range.count, group.weight_decay, group.adapt});
  return ops_.slice_norms(slices);
}

template <class Work>
void Optimizer::for_each_range(const Work& work) const {
  size_t index = 0;
  for (size_t i = 0; i < groups_.size(); ++i)
    for (const ParameterRange& range : groups_[i].ranges)
      work(Range{.offset = range.offset,
                 .count = range.count,
                 .p = nullptr,
                 .g = nullptr,
                 .lr = lr_[i],
                 .weight_decay = groups_[i].weight_decay,
                 .momentum = momentum_[i],
                 .adapt = groups_[i].adapt,
                 .index = index++});
}

void Optimizer::check_arena(size_t parameters, size_t gradients) const {
  if (parameters != arena_size_ || gradients != arena_size_)
    throw_error("optimizer: expected arenas of {} floats, found {} parameters and {} gradients", arena_size_,
                parameters, gradients);
}

void Optimizer::step(std::span<float> parameters, std::span<const float> gradients) {
  check_arena(parameters.size(), gradients.size());
  ++step_count_;
  const auto with = [&](auto work) {
    for_each_range([&](Range range) {
      range.p = parameters.data() + range.offset;
      range.g = gradients.data() + range.offset;
      work(range);
    });
  };
  with([this](const Range& range) { prepare(range); });
  prepared(parameters.data(), gradients.data());
  with([this](const Range& range) { update(range); });
}

void Optimizer::step(std::span<float> parameters, const GradientOf& gradient, const Updated& updated) {
  check_arena(parameters.size(), arena_size_);
  if (numbers_per_parameter()) throw_error("optimizer.kind: {} needs whole gradients", settings_.kind);
  ++step_count_;
  for_each_range([&](Range range) {
    const ParameterRange where{range.offset, range.count};
    range.p = parameters.data() + range.offset;
    range.g = gradient(where);
    update(range);
    updated(where);
  });
}

size_t Optimizer::checked(int index) const {
  if (index < 0 || index >= groups()) throw_error("optimizer: group {} of {} does not exist", index, groups());
  return static_cast<size_t>(index);
}

void Optimizer::set_lr(int group, double lr) {
  if (!(lr >= 0) || std::isinf(lr))
    throw_error("optimizer: {}: lr: expected a number from 0, found {}", groups_[checked(group)].name, lr);
  lr_[checked(group)] = lr;
}

double Optimizer::momentum(int group) const {
  if (!has_momentum()) throw_error("optimizer.kind: {} has no momentum", settings_.kind);
  return momentum_[checked(group)];
}

void Optimizer::set_momentum(int group, double momentum) {
  if (!has_momentum()) throw_error("optimizer.kind: {} has no momentum to schedule", settings_.kind);
  if (!(momentum >= 0 && momentum < 1))
    throw_error("optimizer.momentum: expected a number in [0, 1), found {}", momentum);
  if (momentum > 0 && !can_gain_momentum())
    throw_error("optimizer.momentum: {} was built without momentum, its buffer does not exist", settings_.kind);
  momentum_[checked(group)] = momentum;
}

void Optimizer::set_step_count(int64_t count) {
  if (count < 0) throw_error("optimizer: expected a step count from 0, found {}", count);
  step_count_ = count;
}

}  // namespace lockstep
