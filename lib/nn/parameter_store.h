// All parameters in one flat arena, all gradients in another, sliced by parameter in the order in which backward
// finishes them; buffers (running statistics) in a third. Slices start on 64-byte boundaries; the gaps stay zero. The
// arenas are a backend's memory: of what the spans point to, the host may read and write what memory().host() says, or
// what memory() copies.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/memory.h"
#include "backend/weight_format.h"
#include "core/buffer.h"
#include "core/shape.h"

namespace lockstep {

using ParameterId = int;  // index in registration order (PyTorch's parameters())
using BufferId = int;

struct Parameter {
  std::string name;        // "conv1.weight"
  Shape shape;             // canonical
  WeightFormatPtr format;  // nullptr: canonical
  size_t offset = 0;       // floats, in both arenas
  size_t count = 0;        // stored floats
  bool trainable = true;   // false: frozen, has no gradient and no place in the gradient arena
};

struct ModelBuffer {
  std::string name;  // "bn1.running_mean"
  Shape shape;
  size_t offset = 0, count = 0;
};

// Counts batches, as PyTorch's int64 num_batches_tracked does; all other buffers are real numbers.
inline bool is_counter(std::string_view buffer) { return buffer.ends_with("num_batches_tracked"); }

class ParameterStore {
 public:
  explicit ParameterStore(const Memory& memory = host_memory()) : memory_(&memory) {}  // which outlives this object
  const Memory& memory() const { return *memory_; }
  ParameterId add_parameter(std::string name, Shape shape);
  BufferId add_buffer(std::string name, Shape shape);
  void set_format(ParameterId id, WeightFormatPtr format);  // before lay_out
  void freeze(ParameterId id);                              // before lay_out
  // The first half of lay_out, for those who only ask what it would take: every place and size, no memory.
  void place(std::span<const ParameterId> finish_order);
  size_t value_bytes() const { return value_bytes_; }        // of the parameter arena, once placed
  size_t gradient_bytes() const { return gradient_bytes_; }  // ... of the gradient arena
  size_t buffer_bytes() const { return buffer_bytes_; }      // ... of the buffers
  // Places every parameter: `finish_order` lists all ids as backward finishes them; frozen ones come after all others.
  // `allocate` makes the gradient arena (a communicator's window), which ends where the frozen ones begin; then
  // `values` makes the parameter arena, without it memory() does.
  using Allocate = std::function<Buffer(size_t bytes)>;
  void lay_out(std::span<const ParameterId> finish_order, const Allocate& allocate, const Allocate& values = {});
  bool laid_out() const { return laid_out_; }

  std::span<const Parameter> parameters() const { return parameters_; }
  std::span<const ModelBuffer> buffers() const { return buffers_; }
  std::span<const ParameterId> arena_order() const { return order_; }
  ParameterId find(const std::string& name) const;  // -1: none

  // Counts the occasions on which values may have changed, which is whenever a writable span of them was handed out (so
  // whoever writes takes the span anew). Plans that compute with converted copies of weights go by it.
  uint64_t version() const { return version_; }
  void values_changed() { ++version_; }                                  // through a span taken earlier
  std::span<float> values() { return ++version_, values_.as<float>(); }  // whole arena, frozen parameters too
  std::span<const float> values() const { return values_.as<float>(); }
  std::span<float> trainable_values() { return values().first(gradients().size()); }
  std::span<const float> trainable_values() const { return values().first(gradients().size()); }
  std::span<float> gradients() const { return gradients_.as<float>(); }
  std::span<float> buffer_values() const { return buffer_values_.as<float>(); }
  std::span<float> value(ParameterId id);
  std::span<const float> value(ParameterId id) const;
  std::span<float> gradient(ParameterId id) const;  // empty: frozen
  std::span<float> buffer(BufferId id) const;

  // Canonical copies on the host (PyTorch layout).
  std::vector<float> canonical_value(ParameterId id) const;
  std::vector<float> canonical_gradient(ParameterId id) const;  // zeros: frozen
  void set_canonical(ParameterId id, std::span<const float> values);
  std::vector<float> buffer_copy(BufferId id) const { return memory_->downloaded(buffer(id)); }
  void set_buffer(BufferId id, std::span<const float> values);
  // The same for other arrays that are sliced like a parameter (optimizer state), on the host.
  static void to_canonical(const Parameter& p, std::span<const float> stored, std::span<float> canonical);
  static void to_stored(const Parameter& p, std::span<const float> canonical, std::span<float> stored);
  int64_t total_parameters() const;     // canonical element count
  size_t trainable_parameters() const;  // how many are not frozen

 private:
  std::vector<float> canonical(const Parameter& p, std::span<const float> stored) const;

  const Memory* memory_;
  std::vector<Parameter> parameters_;
  std::vector<ModelBuffer> buffers_;
  std::vector<ParameterId> order_;
  Buffer values_, gradients_, buffer_values_;
  size_t value_bytes_ = 0, gradient_bytes_ = 0, buffer_bytes_ = 0;
  bool laid_out_ = false;
  uint64_t version_ = 1;
};

}  // namespace lockstep
