// A checkpoint before it is written: everything as it is after one optimizer step. Tensors are described; their bytes
// are asked for while their file is written, in whatever thread does that, so they must come from copies that training
// no longer touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state.h"

namespace lockstep {

enum class TensorType : uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i64,
  i32,
  u8
};  // safetensors' F32, F64, F16, BF16, I64, I32, U8
size_t byte_size(TensorType type);
const char* safetensors_name(TensorType type);
std::optional<TensorType> tensor_type(std::string_view safetensors_name);               // nullopt: none of these
std::optional<uint64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape);  // nullopt: negative, overflow

struct TensorSource {
  std::string name;  // as in a PyTorch state dict: "conv1.weight"
  TensorType type = TensorType::f32;
  std::vector<int64_t> shape;  // PyTorch's; empty: a scalar
  std::function<void(std::span<std::byte>)>
      copy_to;  // fills exactly the tensor's bytes (not asked for none), row-major, little-endian
};

struct Snapshot {
  int64_t step = 0;                                          // optimizer steps done: names the checkpoint
  State state;                                               // state.json
  std::string config;                                        // config.yaml, resolved
  std::map<std::string, std::vector<TensorSource>> tensors;  // by file: "model" is model.safetensors
};

}  // namespace lockstep
