// A feed that keeps a data set in the GPU's memory: the host sends the rows of a batch and how they are drawn, a kernel
// on the copy stream makes the batch in one of the two places. It has the bits of a batch that the host assembles.
#pragma once

#include "backend/cuda/cuda_feed.h"
#include "backend/memory.h"
#include "core/stored_rows.h"

namespace lockstep {

class KeepingFeed final : public CudaFeed {
 public:
  // Copies all rows, in host memory, as they are stored; they are not needed afterwards. image: of channels 0 where the
  // rows are no images. memory: of the context, which outlives this object.
  KeepingFeed(const cuda::Context& context, const Memory& memory, const StoredRows& rows, const ImageFormat& image,
              int64_t most_rows);

  // Unlike upload, the copy of the rows waits for no computation, and so neither does release().
  Batch gather(std::span<const PickedRow> rows) override;

 private:
  ImageFormat image_;
  Buffer samples_, table_, targets_;
  StoredRows kept_;  // in these
  Buffer picked_;    // of the batch in the making
  cuda::Event picked_read_;
};

}  // namespace lockstep
