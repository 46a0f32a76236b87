// Batches on their way to a GPU: the copy stream brings them from pinned memory into two places by turns. It waits for
// what was computed with the batch before last, the compute stream waits for the copy; the host waits for neither.
#pragma once

#include <array>

#include "backend/cuda/context.h"
#include "backend/feed.h"

namespace lockstep {

class CudaFeed : public Feed {
 public:
  // context: outlives this object.
  CudaFeed(const cuda::Context& context, size_t x_bytes, size_t target_bytes);

  Buffer allocate(size_t bytes) override { return context_.pinned(bytes); }
  Batch upload(const void* x, size_t x_bytes, const void* targets, size_t target_bytes) override;
  void release() override;

 protected:
  struct Place {
    Buffer x, targets;
    cuda::Event filled, used;
  };
  // Where the next batch goes, which the copy stream may do once place.used has happened.
  const Place& next_place();
  // The copy stream has been told to fill the place. host_read: happens once the host's memory has been read.
  Batch hand_over(const Place& place, const cuda::Event& host_read);

  const cuda::Context& context_;

 private:
  std::array<Place, 2> places_;
  size_t batches_ = 0;
  const cuda::Event* host_read_ = nullptr;  // of the last batch
};

}  // namespace lockstep
