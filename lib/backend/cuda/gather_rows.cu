#include "backend/cuda/gather_rows.h"

#include <cstdint>

#include "backend/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

struct FloatSamples {
  const float* values;
  constexpr float operator()(size_t i) const { return values[i]; }
};

struct ByteSamples {
  const uint8_t* bytes;
  const float* table;  // 1 KB, which stays in the caches
  constexpr float operator()(size_t i) const { return table[bytes[i]]; }
};

// One number of a sample, or, in the columns behind them, of its targets.
template <class Samples>
struct GatherRow {
  Samples samples;
  StoredRows kept;
  const PickedRow* rows;
  float* x;
  int64_t* labels;
  float* values;

  constexpr void operator()(size_t i, size_t column) const {
    const auto row = static_cast<size_t>(rows[i].row), numel = static_cast<size_t>(kept.sample_numel);
    if (column < numel) {
      x[i * numel + column] = samples(row * numel + column);
    } else if (labels != nullptr) {
      labels[i] = kept.labels[row];
    } else {
      const auto width = static_cast<size_t>(kept.value_width);
      values[i * width + column - numel] = kept.values[row * width + column - numel];
    }
  }
};

// Positions in an image fit into 32 bits, whose division is much the faster.
template <class Samples>
struct GatherImage {
  GatherRow<Samples> row;
  ImageFormat image;

  constexpr void operator()(size_t i, size_t column) const {
    const auto numel = static_cast<size_t>(row.kept.sample_numel);
    if (column >= numel) return row(i, column);
    const auto width = static_cast<uint32_t>(image.width), plane = width * static_cast<uint32_t>(image.height);
    const uint32_t position = static_cast<uint32_t>(column), channel = position / plane, pixel = position % plane;
    const int64_t from = drawn_from(image, row.rows[i].draw, pixel / width, pixel % width);
    const size_t first = static_cast<size_t>(row.rows[i].row) * numel + size_t{channel} * plane;
    row.x[i * numel + column] = from < 0 ? image.fill : row.samples(first + static_cast<size_t>(from));
  }
};

template <class Samples>
void gather(cudaStream_t stream, const Samples& samples, const StoredRows& kept, const ImageFormat& image,
            const PickedRow* rows, size_t count, const GatheredBatch& batch) {
  const bool labels = kept.labels != nullptr;
  const GatherRow<Samples> row{samples,
                               kept,
                               rows,
                               batch.x,
                               labels ? static_cast<int64_t*>(batch.targets) : nullptr,
                               labels ? nullptr : static_cast<float*>(batch.targets)};
  const auto columns = static_cast<size_t>(kept.sample_numel + (labels ? 1 : kept.value_width));
  if (image.channels > 0) {
    launch_matrix(stream, count, columns, GatherImage<Samples>{row, image});
  } else {
    launch_matrix(stream, count, columns, row);
  }
}

}  // namespace

void gather_rows(cudaStream_t stream, const StoredRows& kept, const ImageFormat& image, const PickedRow* rows,
                 size_t count, const GatheredBatch& batch) {
  if (kept.bytes != nullptr) {
    gather(stream, ByteSamples{kept.bytes, kept.table}, kept, image, rows, count, batch);
  } else {
    gather(stream, FloatSamples{kept.floats}, kept, image, rows, count, batch);
  }
}

}  // namespace lockstep::cuda
