// IDX, the format of MNIST and Fashion-MNIST: big-endian header (type, dimensions), then bytes. Plain or gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

struct IdxArray {
  Shape shape;  // as in the header: [count] or [count, rows, cols]
  std::vector<uint8_t> data;
};

// An array of unsigned bytes (type 0x08) with min_rank to max_rank dimensions. Throws Error naming the file, what was
// expected and what was found: another magic, a size that doesn't match the header, damaged gzip data.
IdxArray read_idx(const std::string& path, int min_rank, int max_rank);

// settings.images [n, rows, cols] (samples [1, rows, cols]), [n, channels, rows, cols] or [n, features], and
// settings.labels [n]. Pixels are scaled to [0, 1], then normalised.
std::unique_ptr<Dataset> make_idx(const DatasetSettings& settings);

}  // namespace lockstep
