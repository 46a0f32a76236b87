// safetensors files (an 8-byte little-endian length, a JSON header, the tensors' bytes), read as a whole;
// tensor_writer.h writes them. A file is data from anywhere: every size is bounded and checked before memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/snapshot.h"

namespace lockstep {

class TensorFile {
 public:
  struct Entry {
    TensorType type = TensorType::f32;
    std::vector<int64_t> shape;
    size_t begin = 0, end = 0;  // of its bytes, after the header
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  static constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the safetensors packages
  static constexpr size_t kLongestName = 4096;

  // Error, naming file, what was expected and found: cannot be read, truncated, longer than it says, not JSON,
  // overlapping or missing bytes, sizes that overflow or do not fit the shapes, an unknown type, a name twice.
  static TensorFile read(const std::string& path);
  static TensorFile parse(std::vector<std::byte> bytes, const std::string& path);  // path: for messages

  const std::string& path() const { return path_; }
  const Entries& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // the entry __metadata__
  const Entry* find(std::string_view name) const;                                   // null: none
  std::span<const std::byte> bytes(const Entry& entry) const;
  // Any real type as float (f64 is rounded, f16 and bf16 widened, integers converted). Error: no such tensor.
  std::vector<float> floats(std::string_view name) const;
  std::vector<double> doubles(std::string_view name) const;  // exact up to integers of 2^53

 private:
  template <class To>
  std::vector<To> converted_to(std::string_view name) const;

  std::string path_;
  std::vector<std::byte> bytes_;
  size_t data_ = 0;  // where the tensors' bytes begin
  Entries entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep
