#include "train/checkpoint/snapshot.h"

#include <array>

namespace lockstep {
namespace {

struct TypeRow {
  const char* name;
  size_t bytes;
};

// In the order of TensorType.
constexpr std::array<TypeRow, 7> kTypes{
    {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}}};

}  // namespace

size_t byte_size(TensorType type) { return kTypes[static_cast<size_t>(type)].bytes; }
const char* safetensors_name(TensorType type) { return kTypes[static_cast<size_t>(type)].name; }

std::optional<TensorType> tensor_type(std::string_view safetensors_name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (safetensors_name == kTypes[i].name) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

std::optional<uint64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape) {
  uint64_t bytes = byte_size(type);
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace lockstep
