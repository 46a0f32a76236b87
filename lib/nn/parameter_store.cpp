#include "nn/parameter_store.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kAlignFloats = 16;  // 64 bytes

template <class Slice>
std::span<float> slice(const Buffer& arena, const Slice& s) {
  return arena.as<float>().subspan(s.offset, s.count);
}

}  // namespace

ParameterId ParameterStore::add_parameter(std::string name, Shape shape) {
  if (find(name) >= 0) throw_error("two parameters are named '{}': give their layers different names", name);
  Parameter parameter{.name = std::move(name), .shape = shape, .format = nullptr};
  parameter.count = static_cast<size_t>(shape.numel());
  parameters_.push_back(std::move(parameter));
  return static_cast<ParameterId>(parameters_.size()) - 1;
}

BufferId ParameterStore::add_buffer(std::string name, Shape shape) {
  const auto count = static_cast<size_t>(shape.numel());
  buffers_.push_back({std::move(name), shape, 0, count});
  return static_cast<BufferId>(buffers_.size()) - 1;
}

void ParameterStore::set_format(ParameterId id, WeightFormatPtr format) {
  Parameter& p = parameters_[static_cast<size_t>(id)];
  p.count = format ? format->stored_count() : static_cast<size_t>(p.shape.numel());
  p.format = std::move(format);
}

void ParameterStore::freeze(ParameterId id) { parameters_[static_cast<size_t>(id)].trainable = false; }

void ParameterStore::place(std::span<const ParameterId> finish_order) {
  order_.assign(finish_order.begin(), finish_order.end());
  const auto trains = [&](ParameterId id) { return parameters_[static_cast<size_t>(id)].trainable; };
  std::ranges::stable_partition(order_, trains);
  size_t floats = 0, gradient_floats = 0;
  for (ParameterId id : order_) {
    Parameter& p = parameters_[static_cast<size_t>(id)];
    p.offset = floats;
    floats += align_up(p.count, kAlignFloats);
    if (p.trainable) gradient_floats = floats;
  }
  value_bytes_ = floats * sizeof(float);
  gradient_bytes_ = gradient_floats * sizeof(float);
  floats = 0;
  for (ModelBuffer& b : buffers_) {
    b.offset = floats;
    floats += align_up(b.count, kAlignFloats);
  }
  buffer_bytes_ = floats * sizeof(float);
  laid_out_ = true;
}

void ParameterStore::lay_out(std::span<const ParameterId> finish_order, const Allocate& allocate,
                             const Allocate& values) {
  place(finish_order);
  gradients_ = allocate(gradient_bytes_);
  values_ = values ? values(value_bytes_) : memory_->allocate(value_bytes_);
  buffer_values_ = memory_->allocate(buffer_bytes_);
}

ParameterId ParameterStore::find(const std::string& name) const {
  const auto it = std::ranges::find(parameters_, name, &Parameter::name);
  return it == parameters_.end() ? -1 : static_cast<ParameterId>(it - parameters_.begin());
}

std::span<float> ParameterStore::value(ParameterId id) {
  ++version_;
  return slice(values_, parameters_[static_cast<size_t>(id)]);
}
std::span<const float> ParameterStore::value(ParameterId id) const {
  return slice(values_, parameters_[static_cast<size_t>(id)]);
}
std::span<float> ParameterStore::gradient(ParameterId id) const {
  const Parameter& p = parameters_[static_cast<size_t>(id)];
  return p.trainable ? slice(gradients_, p) : std::span<float>();
}
std::span<float> ParameterStore::buffer(BufferId id) const {
  return slice(buffer_values_, buffers_[static_cast<size_t>(id)]);
}

void ParameterStore::to_canonical(const Parameter& p, std::span<const float> stored, std::span<float> canonical) {
  if (p.format) {
    p.format->load(stored, canonical);
  } else {
    std::ranges::copy(stored, canonical.begin());
  }
}

void ParameterStore::to_stored(const Parameter& p, std::span<const float> canonical, std::span<float> stored) {
  if (p.format) {
    p.format->store(canonical, stored);
  } else {
    std::ranges::copy(canonical, stored.begin());
  }
}

std::vector<float> ParameterStore::canonical(const Parameter& p, std::span<const float> stored) const {
  std::vector<float> out(static_cast<size_t>(p.shape.numel())), scratch;
  to_canonical(p, memory_->readable(stored, scratch), out);
  return out;
}

std::vector<float> ParameterStore::canonical_value(ParameterId id) const {
  return canonical(parameters_[static_cast<size_t>(id)], value(id));
}

std::vector<float> ParameterStore::canonical_gradient(ParameterId id) const {
  const Parameter& p = parameters_[static_cast<size_t>(id)];
  if (!p.trainable) return std::vector<float>(static_cast<size_t>(p.shape.numel()));
  return canonical(p, gradient(id));
}

void ParameterStore::set_canonical(ParameterId id, std::span<const float> values) {
  const Parameter& p = parameters_[static_cast<size_t>(id)];
  if (static_cast<int64_t>(values.size()) != p.shape.numel())
    throw_error("{}: expected {} values, found {}", p.name, p.shape.numel(), values.size());
  if (memory_->host()) return to_stored(p, values, value(id));
  std::vector<float> stored(p.count);
  to_stored(p, values, stored);
  memory_->upload(value(id), stored);
}

void ParameterStore::set_buffer(BufferId id, std::span<const float> values) {
  const ModelBuffer& b = buffers_[static_cast<size_t>(id)];
  if (values.size() != b.count) throw_error("{}: expected {} values, found {}", b.name, b.count, values.size());
  memory_->upload(buffer(id), values);
}

size_t ParameterStore::trainable_parameters() const {
  return static_cast<size_t>(std::ranges::count(parameters_, true, &Parameter::trainable));
}

int64_t ParameterStore::total_parameters() const {
  int64_t total = 0;
  for (const Parameter& p : parameters_) total += p.shape.numel();
  return total;
}

}  // namespace lockstep
