// Small snapshots with every kind of content, and files of a folder as bytes.
#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/files.h"
#include "train/checkpoint/checkpoint.h"

namespace lockstep::test {

template <class T>
TensorSource tensor(std::string name, TensorType type, std::vector<int64_t> shape, std::vector<T> values) {
  return {
      .name = std::move(name), .type = type, .shape = std::move(shape), .copy_to = [values](std::span<std::byte> to) {
        std::memcpy(to.data(), values.data(), to.size());
      }};
}

inline TensorSource floats(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
  return tensor(std::move(name), TensorType::f32, std::move(shape), std::move(values));
}

// The same for the same step.
inline Snapshot snapshot(int64_t step) {
  const auto x = static_cast<float>(step);
  Snapshot made{.step = step, .state = {}, .config = "model: {layers: [{linear: 2}]}\n", .tensors = {}};
  made.state.set("sampler.position", step * 16);
  made.state.set("schedule.best", 0.1 * static_cast<double>(step));
  made.state.set("run.name", std::string("test"));
  made.tensors["model"] = {floats("0.weight", {2, 3}, {x, 1, 2, 3, 4, 5}), floats("0.bias", {2}, {x, -x}),
                           tensor<int64_t>("1.num_batches_tracked", TensorType::i64, {}, {step})};
  made.tensors["optimizer"] = {tensor<double>("momentum", TensorType::f64, {2}, {0.25, 1e300})};
  return made;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Every file below a folder, by its name there.
inline std::map<std::string, std::string> all_files(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] = file_bytes(entry.path().string());
  }
  return files;
}

inline std::vector<std::byte> to_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A safetensors file of any header, right or wrong.
inline std::string safetensors(const std::string& header, const std::string& data) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

}  // namespace lockstep::test
