#include "data/targets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace lockstep {

Targets Targets::of_labels(std::vector<int64_t> labels, int64_t classes, std::string_view source) {
  const int64_t limit = classes > 0 ? classes : std::numeric_limits<int32_t>::max();
  int64_t largest = -1;
  for (size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0 || labels[row] >= limit) {
      throw_error("{}: label of row {}: expected 0 to {}, found {}", source, row, limit - 1, labels[row]);
    }
    largest = std::max(largest, labels[row]);
  }
  Targets out;
  out.classes_ = classes > 0 ? classes : largest + 1;
  out.labels_ = std::move(labels);
  return out;
}

Targets Targets::none(int64_t rows) {
  return of_labels(std::vector<int64_t>(static_cast<size_t>(rows)), 1, "no targets");
}

Targets Targets::of_values(std::vector<float> values, int64_t width) {
  Targets out;
  out.kind_ = TargetKind::values;
  out.width_ = width;
  out.values_ = std::move(values);
  return out;
}

Targets Targets::wanted(WantedTargets wanted, std::string_view source) && {
  if (wanted == WantedTargets::labels && kind_ == TargetKind::values) {
    throw_error("{}: the loss needs class indices: expected integer labels, found {} real numbers per sample", source,
                width_);
  }
  if (wanted == WantedTargets::values && kind_ == TargetKind::labels) {
    return of_values({labels_.begin(), labels_.end()}, 1);
  }
  return std::move(*this);
}

int64_t Targets::rows() const {
  return kind_ == TargetKind::labels ? static_cast<int64_t>(labels_.size())
                                     : static_cast<int64_t>(values_.size()) / width_;
}

void Targets::describe(Dataset::Info& info) const {
  info.target_kind = kind_;
  info.target_width = width_;
  info.classes = classes_;
}

void Targets::gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const {
  if (kind_ == TargetKind::labels) {
    int64_t* to = out.labels;
    for (int64_t row : rows) *to++ = labels_[static_cast<size_t>(row + offset)];
    return;
  }
  float* to = out.targets;
  for (int64_t row : rows) to = std::copy_n(values_.data() + (row + offset) * width_, width_, to);
}

void Targets::store(StoredRows& rows) const {
  rows.labels = kind_ == TargetKind::labels ? labels_.data() : nullptr;
  rows.values = kind_ == TargetKind::values ? values_.data() : nullptr;
  rows.value_width = width_;
}

}  // namespace lockstep
