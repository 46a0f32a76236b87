#include "train/checkpoint/tensor_writer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/checkpoint/json_text.h"
#include "train/checkpoint/tensor_file.h"

namespace lockstep {
namespace {

// The packages sort by their list of types, from its end.
constexpr std::array kTypeOrder{TensorType::i64,  TensorType::f64, TensorType::f32, TensorType::i32,
                                TensorType::bf16, TensorType::f16, TensorType::u8};

struct Layout {
  std::vector<const TensorSource*> tensors;  // as they lie in the file
  std::vector<uint64_t> bytes;               // of each
  std::string header;
  uint64_t total = 0;  // of the tensors
};

uint64_t bytes_of(const TensorSource& tensor) {
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes) throw_error("tensor '{}': its shape has no size", tensor.name);
  return *bytes;
}

Layout lay_out(const std::vector<TensorSource>& tensors) {
  Layout layout;
  for (const TensorSource& tensor : tensors) layout.tensors.push_back(&tensor);
  std::ranges::sort(layout.tensors, {}, [](const TensorSource* tensor) {
    return std::pair(std::ranges::find(kTypeOrder, tensor->type), std::string_view(tensor->name));
  });
  layout.header = R"({"__metadata__":{"format":"pt"})";
  for (const TensorSource* tensor : layout.tensors) {
    const uint64_t bytes = bytes_of(*tensor), begin = layout.total;
    if (__builtin_add_overflow(begin, bytes, &layout.total)) throw_error("tensors of more than 2^64 bytes");
    layout.bytes.push_back(bytes);
    layout.header +=
        fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted_json(tensor->name),
                    safetensors_name(tensor->type), fmt::join(tensor->shape, ","), begin, layout.total);
  }
  layout.header += '}';
  while (layout.header.size() % 8 != 0) layout.header += ' ';
  if (layout.header.size() > TensorFile::kMostHeaderBytes) throw_error("too many tensors for one safetensors file");
  return layout;
}

void check_names(const std::vector<TensorSource>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorSource& tensor : tensors) {
    if (tensor.name.size() > TensorFile::kLongestName) throw_error("a tensor's name has more than 4096 bytes");
    names.emplace_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) throw_error("two tensors are named '{}'", *twice);
  if (std::ranges::binary_search(names, "__metadata__")) throw_error("no tensor can be named __metadata__");
}

}  // namespace

FileSum write_tensor_file(const Directory& directory, const std::string& name,
                          const std::vector<TensorSource>& tensors) {
  check_names(tensors);
  const Layout layout = lay_out(tensors);
  std::array<std::byte, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(layout.header.size() >> (8 * i));
  NewFile file(directory, name);
  file.write(length);
  file.write(as_bytes(layout.header));
  std::vector<std::byte> values;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    if (layout.bytes[i] == 0) continue;
    values.resize(std::max<size_t>(values.size(), layout.bytes[i]));
    const auto own = std::span(values).first(layout.bytes[i]);
    layout.tensors[i]->copy_to(own);
    file.write(own);
  }
  return file.finish();
}

uint64_t tensor_file_bytes(const std::vector<TensorSource>& tensors) {
  const Layout layout = lay_out(tensors);
  return 8 + layout.header.size() + layout.total;
}

}  // namespace lockstep
