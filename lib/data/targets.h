// The targets of a data set in memory: one class index per sample, or a row of real numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

class Targets {
 public:
  // Class indices. classes > 0: each must be in [0, classes); 0: classes becomes the largest label + 1. `source` is the
  // file (or the set's name) for the message.
  static Targets of_labels(std::vector<int64_t> labels, int64_t classes, std::string_view source);
  static Targets none(int64_t rows);  // WantedTargets::none
  // width numbers per sample, row-major.
  static Targets of_values(std::vector<float> values, int64_t width);

  // The same targets as the loss wants them: labels become one real number each; real numbers are no labels (Error).
  Targets wanted(WantedTargets wanted, std::string_view source) &&;

  int64_t rows() const;
  uint64_t memory_bytes() const { return labels_.capacity() * sizeof(int64_t) + values_.capacity() * sizeof(float); }
  void describe(Dataset::Info& info) const;  // fills target_kind, target_width, classes
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const;
  void store(StoredRows& rows) const;  // sets labels or values, value_width

 private:
  TargetKind kind_ = TargetKind::labels;
  int64_t width_ = 1, classes_ = 0;
  std::vector<int64_t> labels_;
  std::vector<float> values_;
};

}  // namespace lockstep
