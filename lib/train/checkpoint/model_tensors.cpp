#include "train/checkpoint/model_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

bool reaches(std::span<const float> arena, const Parameter& p) { return p.offset + p.count <= arena.size(); }

std::vector<int64_t> dims(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

// The tensor's values, whose number is `shape`'s.
std::vector<float> checked_floats(const TensorFile& file, const std::string& name, const Shape& shape) {
  const TensorFile::Entry* entry = file.find(name);
  if (entry == nullptr) throw_error("{}: expected a tensor '{}', found none of that name", file.path(), name);
  if (entry->shape != dims(shape))
    throw_error("{}: tensor '{}': expected the shape {}, found [{}]", file.path(), name, shape.str(),
                fmt::join(entry->shape, ", "));
  return file.floats(name);
}

}  // namespace

Copy CopyPool::copy(const Memory& memory, std::span<const float> values) {
  const auto free = std::ranges::find_if(
      blocks_, [&](const auto& block) { return block.use_count() == 1 && block->size() == values.size(); });
  const auto& block =
      free != blocks_.end() ? *free : blocks_.emplace_back(std::make_shared<std::vector<float>>(values.size()));
  memory.download(*block, values);
  return {block, *block};
}

void add_parameter_tensors(const ParameterStore& store, const Copy& arena, const std::string& suffix,
                           std::vector<TensorSource>& tensors) {
  for (const Parameter& p : store.parameters()) {
    if (!reaches(arena.values, p)) continue;
    tensors.push_back({.name = p.name + suffix,
                       .type = TensorType::f32,
                       .shape = dims(p.shape),
                       .copy_to = [arena, &p](std::span<std::byte> out) {
                         const std::span canonical(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
                         ParameterStore::to_canonical(p, arena.values.subspan(p.offset, p.count), canonical);
                       }});
  }
}

void add_buffer_tensors(const ParameterStore& store, const Copy& values, const std::string& prefix,
                        std::vector<TensorSource>& tensors) {
  for (const ModelBuffer& b : store.buffers()) {
    const std::span<const float> own = values.values.subspan(b.offset, b.count);
    TensorSource source{.name = prefix + b.name, .type = TensorType::f32, .shape = dims(b.shape), .copy_to = {}};
    if (is_counter(b.name)) {
      source.type = TensorType::i64;
      source.copy_to = [owner = values.owner, own](std::span<std::byte> out) {
        for (size_t i = 0; i < own.size(); ++i) {
          const auto count = static_cast<int64_t>(own[i]);
          std::memcpy(out.data() + i * sizeof(count), &count, sizeof(count));
        }
      };
    } else {
      source.copy_to = [owner = values.owner, own](std::span<std::byte> out) {
        std::memcpy(out.data(), own.data(), out.size());
      };
    }
    tensors.push_back(std::move(source));
  }
}

void read_parameter_tensors(const TensorFile& file, const ParameterStore& store, const std::string& suffix,
                            std::span<float> arena) {
  std::vector<float> stored;
  for (const Parameter& p : store.parameters()) {
    if (!reaches(arena, p)) continue;
    const std::vector<float> values = checked_floats(file, p.name + suffix, p.shape);
    stored.assign(p.count, 0);
    ParameterStore::to_stored(p, values, stored);
    store.memory().upload(arena.subspan(p.offset, p.count), stored);
  }
}

void read_buffer_tensors(const TensorFile& file, const ParameterStore& store, const std::string& prefix,
                         std::span<float> values) {
  for (const ModelBuffer& b : store.buffers())
    std::ranges::copy(checked_floats(file, prefix + b.name, b.shape), values.subspan(b.offset).begin());
}

void check_tensor_count(const TensorFile& file, size_t expected) {
  if (file.entries().size() != expected)
    throw_error("{}: expected {} tensors, found {}: it belongs to another model or optimizer", file.path(), expected,
                file.entries().size());
}

}  // namespace lockstep
