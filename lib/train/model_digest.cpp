#include "train/model_digest.h"

#include "data/sha256.h"

namespace lockstep {
namespace {

void update(Sha256& hash, const void* bytes, size_t count) { hash.update({static_cast<const uint8_t*>(bytes), count}); }

void update(Sha256& hash, const std::string& name, const Shape& shape, std::span<const float> values) {
  const std::string head = name + " " + shape.str() + "\n";
  update(hash, head.data(), head.size());
  update(hash, values.data(), values.size_bytes());
}

}  // namespace

std::string model_digest(const ParameterStore& store) {
  Sha256 hash;
  for (size_t id = 0; id < store.parameters().size(); ++id) {
    const Parameter& p = store.parameters()[id];
    update(hash, p.name, p.shape, store.canonical_value(static_cast<ParameterId>(id)));
  }
  for (size_t id = 0; id < store.buffers().size(); ++id) {
    const ModelBuffer& b = store.buffers()[id];
    update(hash, b.name, b.shape, store.buffer_copy(static_cast<BufferId>(id)));
  }
  return hash.hex();
}

}  // namespace lockstep
