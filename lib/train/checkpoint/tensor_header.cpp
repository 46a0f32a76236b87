#include "train/checkpoint/tensor_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostTensors = size_t{1} << 20;
constexpr size_t kMostDimensions = 64;  // PyTorch's limit

// Where the parser is: outside, in the map of tensors, in one tensor's map, in its list, in the map of metadata.
enum class Place : uint8_t { start, tensors, tensor, list, metadata, end };

class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(const std::string& path, TensorHeader& header) : path_(path), header_(header) {}

  bool start_object(size_t) override {
    if (place_ == Place::start) return enter(Place::tensors);
    if (place_ != Place::tensors) fail("a map where none belongs");
    if (name_ == "__metadata__") return enter(Place::metadata);
    type_.clear();
    shape_seen_ = false;
    shape_.clear(), offsets_.clear();
    return enter(Place::tensor);
  }

  bool end_object() override {
    if (place_ == Place::tensors) return enter(Place::end);
    if (place_ == Place::tensor) add_tensor();
    return enter(Place::tensors);
  }

  bool key(std::string& text) override {
    if (text.size() > TensorFile::kLongestName) fail("a name of more than 4096 bytes");
    if (place_ == Place::tensors) {
      if (header_.entries.contains(text) || (text == "__metadata__" && metadata_seen_)) fail_twice(text);
      metadata_seen_ |= text == "__metadata__";
      name_ = text;
    } else {
      key_ = text;
      if (place_ == Place::metadata && header_.metadata.contains(text)) fail_twice(text);
      if (place_ == Place::tensor && text != "dtype" && text != "shape" && text != "data_offsets")
        fail(fmt::format("the key '{}'; expected dtype, shape and data_offsets", printable(text)));
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(key_, text);
    } else if (place_ == Place::tensor && key_ == "dtype") {
      if (!type_.empty()) fail_twice(key_);
      type_ = text;
      if (!tensor_type(text))
        fail(fmt::format("the type '{}'; read are F32, F64, F16, BF16, I64, I32 and U8", printable(text)));
    } else {
      fail("a text where none belongs");
    }
    return true;
  }

  bool start_array(size_t) override {
    const bool is_shape = key_ == "shape";
    if (place_ != Place::tensor || (!is_shape && key_ != "data_offsets")) fail("a list where none belongs");
    if (is_shape ? shape_seen_ : !offsets_.empty()) fail_twice(key_);
    shape_seen_ |= is_shape;
    return enter(Place::list);
  }

  bool end_array() override {
    if (key_ == "data_offsets" && offsets_.size() != 2)
      fail(fmt::format("data_offsets with {} numbers; expected begin and end", offsets_.size()));
    return enter(Place::tensor);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::list) fail("a number where none belongs");
    const bool is_shape = key_ == "shape";
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) fail(fmt::format("the size {}", value));
    if (is_shape && shape_.size() == kMostDimensions) fail("a shape of more than 64 dimensions");
    if (!is_shape && offsets_.size() == 2) fail("data_offsets with more than 2 numbers");
    (is_shape ? shape_ : offsets_).push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t value) override { fail(fmt::format("the size {}", value)); }
  bool number_float(number_float_t, const std::string& text) override {
    fail(fmt::format("the number {}; sizes are integers of 63 bits", printable(text)));
  }
  bool null() override { fail("null where none belongs"); }
  bool boolean(bool) override { fail("true or false where none belongs"); }
  bool binary(Json::binary_t&) override { fail("binary data"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    throw_error("{}: header: is no JSON at byte {}", path_, position);
  }

 private:
  bool enter(Place place) {
    place_ = place;
    return true;
  }

  void add_tensor() {
    if (type_.empty() || !shape_seen_ || offsets_.empty())
      fail(fmt::format("'{}' without dtype, shape or data_offsets", printable(name_)));
    if (header_.entries.size() == kMostTensors) fail(fmt::format("more than {} tensors", kMostTensors));
    header_.entries.emplace(name_, TensorFile::Entry{.type = *tensor_type(type_),
                                                     .shape = shape_,
                                                     .begin = static_cast<size_t>(offsets_[0]),
                                                     .end = static_cast<size_t>(offsets_[1])});
  }

  [[noreturn]] void fail(const std::string& found) const {
    const std::string where = name_.empty() ? "" : fmt::format(" at '{}'", printable(name_));
    throw_error("{}: header: unexpected{}: {}", path_, where, found);
  }
  [[noreturn]] void fail_twice(const std::string& name) const {
    throw_error("{}: header: '{}' is there twice", path_, printable(name));
  }

  const std::string& path_;
  TensorHeader& header_;
  Place place_ = Place::start;
  std::string name_, key_, type_;
  bool metadata_seen_ = false, shape_seen_ = false;
  std::vector<int64_t> shape_, offsets_;
};

}  // namespace

TensorHeader parse_tensor_header(std::string_view text, const std::string& path) {
  if (!text.starts_with('{')) throw_error("{}: header: expected JSON that starts with {{", path);
  TensorHeader header;
  HeaderEvents events(path, header);
  Json::sax_parse(text.begin(), text.end(), &events);
  return header;
}

void check_offsets(const TensorFile::Entries& entries, uint64_t data_bytes, const std::string& path) {
  std::vector<const TensorFile::Entries::value_type*> in_order;
  in_order.reserve(entries.size());
  for (const auto& entry : entries) in_order.push_back(&entry);
  std::ranges::sort(in_order, {}, [](const auto* entry) { return std::pair(entry->second.begin, entry->second.end); });
  size_t at = 0;
  for (const auto* each : in_order) {
    const auto& [name, entry] = *each;
    if (entry.begin != at || entry.end < entry.begin)
      throw_error("{}: '{}': expected bytes from {} on, found {} to {}: the tensors overlap or leave holes", path,
                  printable(name), at, entry.begin, entry.end);
    const auto bytes = tensor_bytes(entry.type, entry.shape);
    if (!bytes || *bytes != entry.end - entry.begin)
      throw_error("{}: '{}': {} of shape [{}] has {} bytes, found {}", path, printable(name),
                  safetensors_name(entry.type), fmt::join(entry.shape, ", "),
                  bytes ? fmt::to_string(*bytes) : "more than 2^64", entry.end - entry.begin);
    at = entry.end;
  }
  if (at != data_bytes) throw_error("{}: expected {} bytes of tensors, found {}", path, at, data_bytes);
}

}  // namespace lockstep
