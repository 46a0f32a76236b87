#include "data/dataset.h"

#include <utility>

#include "core/error.h"

namespace lockstep {

void Dataset::check(std::span<const int64_t> rows) const {
  for (int64_t row : rows) {
    if (row < 0 || row >= info_.size) throw_error("row {} of a data set of {} samples", row, info_.size);
  }
}

void Dataset::read(std::span<const int64_t> rows, const Batch& out) const {
  check(rows);
  gather(rows, 0, out);
}

namespace {
Dataset::Info subset_info(const Dataset& whole, int64_t first, int64_t count) {
  if (first < 0 || count < 0 || first > whole.size() || count > whole.size() - first) {
    throw_error("subset of {} samples from {}: expected rows within the data set, found {} samples", count, first,
                whole.size());
  }
  Dataset::Info info = whole.info();
  info.size = count;
  return info;
}
}  // namespace

Subset::Subset(std::unique_ptr<const Dataset> whole, int64_t first, int64_t count)
    : Dataset(subset_info(*whole, first, count)), whole_(std::move(whole)), first_(first) {}

std::optional<StoredRows> Subset::stored() const {
  std::optional<StoredRows> rows = whole_->stored();
  if (!rows) return rows;
  rows->count = size();
  if (rows->bytes != nullptr) rows->bytes += first_ * rows->sample_numel;
  if (rows->floats != nullptr) rows->floats += first_ * rows->sample_numel;
  if (rows->labels != nullptr) rows->labels += first_;
  if (rows->values != nullptr) rows->values += first_ * rows->value_width;
  return rows;
}

void Subset::gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const {
  whole_->gather(rows, offset + first_, out);
}

}  // namespace lockstep
