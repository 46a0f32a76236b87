// Batches on their way to a GPU: the copy stream brings them from pinned memory into two places by turns. It waits for
// what was computed with the batch before last, the compute stream waits for the copy; the host waits for neither.
#pragma once

#include <array>

#include "backend/cuda/context.h"
#include "backend/feed.h"

namespace lockstep {

class CudaFeed final : public Feed {
 public:
  // context: outlives this object.
  CudaFeed(const cuda::Context& context, size_t x_bytes, size_t target_bytes);

  Buffer allocate(size_t bytes) override { return context_.pinned(bytes); }
  Batch upload(const void* x, size_t x_bytes, const void* targets, size_t target_bytes) override;
  void release() override;

 private:
  struct Place {
    Buffer x, targets;
    cuda::Event filled, used;
  };
  const cuda::Context& context_;
  std::array<Place, 2> places_;
  size_t uploads_ = 0;
};

}  // namespace lockstep
