// All samples of a data set, read at once, for comparisons.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "data/dataset.h"

namespace lockstep::test {

struct Rows {
  std::vector<float> x, targets;
  std::vector<int64_t> labels;
};

inline Rows read_rows(const Dataset& dataset, const std::vector<int64_t>& rows) {
  Rows out;
  out.x.resize(rows.size() * static_cast<size_t>(dataset.sample_shape().numel()));
  Batch batch;
  if (dataset.target_kind() == TargetKind::labels) {
    out.labels.resize(rows.size());
  } else {
    out.targets.resize(rows.size() * static_cast<size_t>(dataset.target_width()));
  }
  batch.x = out.x.data();
  batch.labels = out.labels.data();
  batch.targets = out.targets.data();
  dataset.read(rows, batch);
  return out;
}

inline Rows read_all(const Dataset& dataset) {
  std::vector<int64_t> rows(static_cast<size_t>(dataset.size()));
  std::iota(rows.begin(), rows.end(), 0);
  return read_rows(dataset, rows);
}

}  // namespace lockstep::test
