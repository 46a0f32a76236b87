#include "train/checkpoint/tensor_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/half.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/tensor_header.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

constexpr size_t kLengthBytes = 8;

// Not aligned to anything: byte by byte, which the compiler turns into plain loads.
template <class T, class To>
std::vector<To> converted(std::span<const std::byte> bytes) {
  std::vector<To> out(bytes.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_arithmetic_v<T>) {
      out[i] = static_cast<To>(value);
    } else {
      out[i] = widen(value);
    }
  }
  return out;
}

}  // namespace

TensorFile TensorFile::read(const std::string& path) { return parse(read_file(path), path); }

TensorFile TensorFile::parse(std::vector<std::byte> bytes, const std::string& path) {
  if (bytes.size() < kLengthBytes) throw_error("{}: expected a safetensors file, found {} bytes", path, bytes.size());
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8U | std::to_integer<uint64_t>(bytes[i]);
  if (length > kMostHeaderBytes)
    throw_error("{}: expected a header of {} bytes at most, found {}: no safetensors file", path, kMostHeaderBytes,
                length);
  if (length > bytes.size() - kLengthBytes)
    throw_error("{}: expected a header of {} bytes, found {}: truncated, or no safetensors file", path, length,
                bytes.size() - kLengthBytes);
  TensorFile file;
  file.path_ = path;
  file.data_ = kLengthBytes + length;
  TensorHeader header = parse_tensor_header(as_text(std::span(bytes).subspan(kLengthBytes, length)), path);
  check_offsets(header.entries, bytes.size() - file.data_, path);
  file.entries_ = std::move(header.entries);
  file.metadata_ = std::move(header.metadata);
  file.bytes_ = std::move(bytes);
  return file;
}

const TensorFile::Entry* TensorFile::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::span<const std::byte> TensorFile::bytes(const Entry& entry) const {
  return std::span(bytes_).subspan(data_ + entry.begin, entry.end - entry.begin);
}

template <class To>
std::vector<To> TensorFile::converted_to(std::string_view name) const {
  const Entry* entry = find(name);
  if (entry == nullptr) throw_error("{}: holds no '{}'", path_, printable(name));
  switch (entry->type) {
    case TensorType::f32: return converted<float, To>(bytes(*entry));
    case TensorType::f64: return converted<double, To>(bytes(*entry));
    case TensorType::f16: return converted<F16, To>(bytes(*entry));
    case TensorType::bf16: return converted<Bf16, To>(bytes(*entry));
    case TensorType::i64: return converted<int64_t, To>(bytes(*entry));
    case TensorType::i32: return converted<int32_t, To>(bytes(*entry));
    case TensorType::u8: return converted<uint8_t, To>(bytes(*entry));
  }
  throw_error("{}: '{}' is of no known type", path_, printable(name));
}

std::vector<float> TensorFile::floats(std::string_view name) const { return converted_to<float>(name); }
std::vector<double> TensorFile::doubles(std::string_view name) const { return converted_to<double>(name); }

}  // namespace lockstep
