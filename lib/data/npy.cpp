#include "data/npy.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/shape.h"
#include "data/input_file.h"
#include "data/memory_dataset.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "elements are taken from the file as they lie there");

namespace {

constexpr uint64_t kMaxHeader = 65535;  // numpy's own headers are 128 bytes; longer ones are structured types

constexpr uint64_t bytes_of(NpyType type) {
  switch (type) {
    case NpyType::f4:
    case NpyType::i4: return 4;
    case NpyType::f8:
    case NpyType::i8: return 8;
    case NpyType::u1: break;
  }
  return 1;
}

bool is_integer(NpyType type) { return type != NpyType::f4 && type != NpyType::f8; }

template <class From, class To>
std::vector<To> convert(const std::vector<uint8_t>& bytes) {
  std::vector<To> out(bytes.size() / sizeof(From));
  for (size_t i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = static_cast<To>(value);
  }
  return out;
}

std::string shape_text(const NpyHeader& header) { return fmt::format("({})", fmt::join(header.shape, ", ")); }

Targets read_targets(const DatasetSettings& settings) {
  const NpyArray y = read_npy(settings.y);
  const std::vector<int64_t>& shape = y.header.shape;
  int64_t width = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) width *= shape[axis];  // read_npy has checked the product
  if (shape.empty() || width == 0)
    throw_error("{}: expected targets, found shape {}", settings.y, shape_text(y.header));
  if (is_integer(y.header.type) && width == 1) {
    return Targets::of_labels(y.converted<int64_t>(), settings.classes, settings.y)
        .wanted(settings.targets, settings.y);
  }
  return Targets::of_values(y.converted<float>(), width).wanted(settings.targets, settings.y);
}

}  // namespace

template <class T>
std::vector<T> NpyArray::converted() const {
  switch (header.type) {
    case NpyType::f4: return convert<float, T>(data);
    case NpyType::f8: return convert<double, T>(data);
    case NpyType::i4: return convert<int32_t, T>(data);
    case NpyType::i8: return convert<int64_t, T>(data);
    case NpyType::u1: break;
  }
  return convert<uint8_t, T>(data);
}
template std::vector<float> NpyArray::converted<float>() const;
template std::vector<int64_t> NpyArray::converted<int64_t>() const;

NpyArray read_npy(const std::string& path) {
  InputFile file(path);
  std::array<uint8_t, 8> start{};
  file.read_exactly(start, "npy magic");
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0)
    throw_error("{}: expected an .npy file (\\x93NUMPY), found other bytes", path);
  const int major = start[6];
  if (major < 1 || major > 3) throw_error("{}: npy format version: expected 1, 2 or 3, found {}", path, major);
  std::array<uint8_t, 4> length_bytes{};
  file.read_exactly(std::span(length_bytes).first(major == 1 ? 2 : 4), "npy header length");
  uint32_t length = 0;
  std::memcpy(&length, length_bytes.data(), sizeof length);
  if (length > kMaxHeader)
    throw_error("{}: npy header length: expected at most {}, found {}", path, kMaxHeader, length);
  std::vector<uint8_t> text(length);
  file.read_exactly(text, "npy header");

  NpyArray out;
  out.header = parse_npy_header({reinterpret_cast<const char*>(text.data()), text.size()}, path);
  if (out.header.fortran_order)
    throw_error("{}: expected C order, found Fortran order: save numpy.ascontiguousarray(array)", path);
  uint64_t bytes = bytes_of(out.header.type);
  for (int64_t dim : out.header.shape) bytes = checked_product(bytes, static_cast<uint64_t>(dim), path);
  out.data = file.read_rest(bytes, fmt::format("data for shape {}", shape_text(out.header)));
  return out;
}

std::unique_ptr<Dataset> make_npy(const DatasetSettings& settings) {
  const bool alone = settings.targets == WantedTargets::none;
  if (settings.x.empty() || (settings.y.empty() && !alone)) {
    throw_error("kind npy: expected the keys x and y, found {}",
                !settings.x.empty() ? "only x" : (!settings.y.empty() ? "only y" : "neither"));
  }
  const Normalization normalization(settings);
  std::optional<Targets> targets;
  if (!alone) targets = read_targets(settings);
  NpyArray x = read_npy(settings.x);
  const std::vector<int64_t>& shape = x.header.shape;
  if (shape.empty() || x.data.empty())
    throw_error("{}: expected samples, found shape {}", settings.x, shape_text(x.header));
  if (shape.size() > Shape::kMaxRank)
    throw_error("{}: expected at most {} dimensions, found {}", settings.x, static_cast<int>(Shape::kMaxRank),
                shape.size());
  if (alone) targets = Targets::none(shape[0]);
  if (shape[0] != targets->rows()) {
    throw_error("{}: expected {} targets, one for each sample of {}, found {}", settings.y, shape[0], settings.x,
                targets->rows());
  }
  const Shape sample = shape.size() == 1 ? Shape{1} : Shape(std::span(shape).subspan(1));
  if (x.header.type == NpyType::u1) {
    return std::make_unique<ByteDataset>(std::move(x.data), sample, std::move(*targets), normalization, settings.x);
  }
  return std::make_unique<FloatDataset>(x.converted<float>(), sample, std::move(*targets), normalization, settings.x);
}

}  // namespace lockstep
