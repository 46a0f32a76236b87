// A view of memory with a shape: never owns, never allocates.
#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"

namespace lockstep {

// What a tensor looks like in memory, without the memory; whoever gets an untyped pointer to it goes by dtype.
// Activations are stored N, C/block, spatial..., block: block 1 is PyTorch's contiguous layout, 8 and 16 are the
// blocked layouts of oneDNN (only where C is a multiple of it), block C is channels last.
struct TensorDesc {
  Shape shape;  // logical, batch first: [N, C, H, W] or [N, C]
  int64_t channel_block = 1;
  DType dtype = DType::f32;
  size_t bytes() const { return static_cast<size_t>(shape.numel()) * size_of(dtype); }
  bool operator==(const TensorDesc&) const = default;
};

struct TensorView {
  void* data = nullptr;
  TensorDesc desc;
  float* f32() const { return static_cast<float*>(data); }
  int64_t* i64() const { return static_cast<int64_t*>(data); }
  int64_t numel() const { return desc.shape.numel(); }
  std::span<float> span() const { return {f32(), static_cast<size_t>(numel())}; }
};

}  // namespace lockstep
