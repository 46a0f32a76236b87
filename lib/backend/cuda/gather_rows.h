// Batches made on a GPU of a data set that it keeps: rows are fetched, bytes become numbers, images are drawn.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/picked_row.h"
#include "core/stored_rows.h"

namespace lockstep::cuda {

// The batch's place: x [count, sample_numel]; labels [count] or values [count, value_width], as the data set has them.
struct GatheredBatch {
  float* x;
  void* targets;
};

// Row rows[i] goes to place i of the batch, to the bit as the host would read it (data/memory_dataset.h) and draw it
// (data/augmentation.h). All pointers are device memory, rows within the data set; queued on the stream.
void gather_rows(cudaStream_t stream, const StoredRows& kept, const ImageFormat& image, const PickedRow* rows,
                 size_t count, const GatheredBatch& batch);

}  // namespace lockstep::cuda
