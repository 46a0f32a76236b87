// Data sets held in memory: as floats, or as the file's bytes with the normalisation done while a batch is read.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/settings.h"
#include "data/targets.h"

namespace lockstep {

// torchvision's Normalize, in float: subtract, then divide. The default changes nothing.
struct Normalization {
  float mean = 0, std = 1;
  explicit Normalization(const DatasetSettings& settings);  // throws Error for std <= 0 or anything not finite
  float operator()(float value) const { return (value - mean) / std; }
};

class FloatDataset final : public Dataset {
 public:
  // x: [rows, sample_shape], normalised here once. Throws Error when x and targets differ in rows.
  FloatDataset(std::vector<float> x, const Shape& sample_shape, Targets targets, const Normalization& normalization,
               std::string_view source);
  uint64_t memory_bytes() const override { return x_.capacity() * sizeof(float) + targets_.memory_bytes(); }
  std::optional<StoredRows> stored() const override;

 protected:
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override;

 private:
  std::vector<float> x_;
  int64_t sample_numel_;
  Targets targets_;
};

class ByteDataset final : public Dataset {
 public:
  // pixels: [rows, sample_shape]; a sample is read as normalization(byte / 255), torchvision's ToTensor and Normalize.
  ByteDataset(std::vector<uint8_t> pixels, const Shape& sample_shape, Targets targets,
              const Normalization& normalization, std::string_view source);
  uint64_t memory_bytes() const override { return pixels_.capacity() + targets_.memory_bytes(); }
  std::optional<StoredRows> stored() const override;

 protected:
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override;

 private:
  std::vector<uint8_t> pixels_;
  int64_t sample_numel_;
  Targets targets_;
  alignas(64) std::array<float, 256> table_;  // byte -> normalised float
};

}  // namespace lockstep
