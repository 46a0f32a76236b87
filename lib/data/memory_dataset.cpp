#include "data/memory_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace lockstep {

namespace {

Dataset::Info memory_info(size_t elements, const Shape& sample_shape, const Targets& targets, std::string_view source) {
  const int64_t numel = sample_shape.numel();
  if (numel == 0) throw_error("{}: a sample of shape {} holds no number", source, sample_shape.str());
  Dataset::Info info;
  info.size = static_cast<int64_t>(elements) / numel;
  info.sample_shape = sample_shape;
  targets.describe(info);
  if (targets.rows() != info.size) {
    throw_error("{}: samples and targets differ in number: expected {} targets, found {}", source, info.size,
                targets.rows());
  }
  return info;
}

// One sample: the bytes are taken eight at a time, because loads, not arithmetic, are what a table look-up costs.
void look_up(const uint8_t* bytes, int64_t count, const float* table, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, sizeof eight);
    for (int k = 0; k < 8; ++k) out[i + k] = table[(eight >> (8 * k)) & 0xff];
  }
  for (; i < count; ++i) out[i] = table[bytes[i]];
}

// Samples lie anywhere in memory: the next one is asked for while this one is converted.
void prefetch(const uint8_t* bytes, int64_t count) {
  for (int64_t i = 0; i < std::min<int64_t>(count, 4096); i += 64) __builtin_prefetch(bytes + i);
}

}  // namespace

Normalization::Normalization(const DatasetSettings& settings)
    : mean(static_cast<float>(settings.mean.value_or(0))), std(static_cast<float>(settings.std.value_or(1))) {
  if (!std::isfinite(mean)) throw_error("normalize.mean: expected a finite number, found {}", mean);
  if (!std::isfinite(std) || std <= 0) throw_error("normalize.std: expected a number above 0, found {}", std);
}

FloatDataset::FloatDataset(std::vector<float> x, const Shape& sample_shape, Targets targets,
                           const Normalization& normalization, std::string_view source)
    : Dataset(memory_info(x.size(), sample_shape, targets, source)),
      x_(std::move(x)),
      sample_numel_(sample_shape.numel()),
      targets_(std::move(targets)) {
  std::transform(x_.begin(), x_.end(), x_.begin(), normalization);
}

void FloatDataset::gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const {
  float* to = out.x;
  for (int64_t row : rows) to = std::copy_n(x_.data() + (row + offset) * sample_numel_, sample_numel_, to);
  targets_.gather(rows, offset, out);
}

std::optional<StoredRows> FloatDataset::stored() const {
  StoredRows rows{.count = size(), .sample_numel = sample_numel_, .floats = x_.data()};
  targets_.store(rows);
  return rows;
}

ByteDataset::ByteDataset(std::vector<uint8_t> pixels, const Shape& sample_shape, Targets targets,
                         const Normalization& normalization, std::string_view source)
    : Dataset(memory_info(pixels.size(), sample_shape, targets, source)),
      pixels_(std::move(pixels)),
      sample_numel_(sample_shape.numel()),
      targets_(std::move(targets)) {
  for (size_t byte = 0; byte < 256; ++byte) table_[byte] = normalization(static_cast<float>(byte) / 255.0F);
}

void ByteDataset::gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const {
  const auto sample = [&](size_t i) { return pixels_.data() + (rows[i] + offset) * sample_numel_; };
  float* to = out.x;
  for (size_t i = 0; i < rows.size(); ++i, to += sample_numel_) {
    if (i + 1 < rows.size()) prefetch(sample(i + 1), sample_numel_);
    look_up(sample(i), sample_numel_, table_.data(), to);
  }
  targets_.gather(rows, offset, out);
}

std::optional<StoredRows> ByteDataset::stored() const {
  StoredRows rows{.count = size(), .sample_numel = sample_numel_, .bytes = pixels_.data(), .table = table_.data()};
  targets_.store(rows);
  return rows;
}

}  // namespace lockstep
