// Between lockstep's descriptions and oneDNN's: activation layouts, stored weight formats, and how good an
// implementation is, judged by its name.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/cpu/onednn_primitive.h"
#include "backend/weight_format.h"
#include "core/buffer.h"
#include "core/tensor.h"

namespace lockstep::onednn {

// Rank 2 or 4, channel block 1, 8, 16 or all channels.
MemoryDesc activation_layout(const TensorDesc& desc);

// The channel blocks a tensor with this many channels can have, widest first: 16, 8, 1.
std::vector<int64_t> channel_blocks(int64_t channels);

// 0 for compiled kernels, more for matrix products with copies, much more for reference loops, most for none at all.
// Fixed by name, never by timing: the choice must be the same on every rank and in every run.
constexpr double kReferenceCost = 100;
double cost(const PrimitiveDesc& desc);

// A parameter kept in one of oneDNN's layouts.
class StoredWeights : public WeightFormat {
 public:
  StoredWeights(MemoryDesc canonical, MemoryDesc stored)
      : canonical_(std::move(canonical)), stored_(std::move(stored)) {}
  size_t stored_count() const override { return stored_.bytes() / sizeof(float); }
  void store(std::span<const float> canonical, std::span<float> stored) const override;
  void load(std::span<const float> stored, std::span<float> canonical) const override;
  const MemoryDesc& layout() const { return stored_; }

 private:
  MemoryDesc canonical_, stored_;
};

// The layout behind `format`: canonical for null. Throws Error when it belongs to another kind of plan.
MemoryDesc stored_layout(const WeightFormatPtr& format, const MemoryDesc& canonical);
// Null when `stored` is the canonical layout itself.
WeightFormatPtr weight_format(const MemoryDesc& canonical, const MemoryDesc& stored);

// A copy between two layouts of one operand, or nothing at all when they are equal.
class Conversion {
 public:
  Conversion() = default;
  Conversion(const Context& context, const MemoryDesc& from, const MemoryDesc& to);
  bool needed() const { return static_cast<bool>(primitive_); }
  size_t bytes() const { return bytes_; }  // of the converted operand
  size_t scratchpad_bytes() const { return primitive_.scratchpad_bytes(); }
  void run(const void* from, void* to, void* scratchpad) { primitive_.run({from, to}, scratchpad); }

 private:
  Primitive primitive_;
  size_t bytes_ = 0;
};

// Weights in the layout and type that a pass wants: as stored, or a copy that lives from one change to the next.
class PassWeights {
 public:
  PassWeights() = default;
  PassWeights(const Context& context, const MemoryDesc& stored, const MemoryDesc& wanted)
      : conversion_(context, stored, wanted), copy_(Buffer::host(conversion_.needed() ? wanted.bytes() : 0)) {}
  size_t scratchpad_bytes() const { return conversion_.needed() ? conversion_.scratchpad_bytes() : 0; }
  void take(const float* stored, void* scratchpad) {
    if (conversion_.needed()) conversion_.run(stored, copy_.data(), scratchpad);
  }
  const void* get(const float* stored) const { return conversion_.needed() ? copy_.data() : stored; }

 private:
  Conversion conversion_;
  Buffer copy_;
};

}  // namespace lockstep::onednn
