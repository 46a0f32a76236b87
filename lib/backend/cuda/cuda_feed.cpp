#include "backend/cuda/cuda_feed.h"

#include "core/error.h"

namespace lockstep {

CudaFeed::CudaFeed(const cuda::Context& context, size_t x_bytes, size_t target_bytes) : context_(context) {
  for (Place& place : places_) {
    place.x = context.allocate(x_bytes);
    place.targets = context.allocate(target_bytes);
  }
}

const CudaFeed::Place& CudaFeed::next_place() {
  // Whatever reads the last batch has been asked for by now.
  if (batches_ > 0) context_.compute().record(places_[(batches_ - 1) % places_.size()].used);
  return places_[batches_++ % places_.size()];
}

Feed::Batch CudaFeed::hand_over(const Place& place, const cuda::Event& host_read) {
  context_.copies().record(place.filled);
  context_.compute().wait(place.filled);
  host_read_ = &host_read;
  return {place.x.data(), place.targets.data()};
}

Feed::Batch CudaFeed::upload(const void* x, size_t x_bytes, const void* targets, size_t target_bytes) {
  const Place& place = next_place();
  if (x_bytes > place.x.bytes() || target_bytes > place.targets.bytes())
    throw_error("a batch of {} and {} bytes: expected at most {} and {}", x_bytes, target_bytes, place.x.bytes(),
                place.targets.bytes());
  context_.copies().wait(place.used);
  context_.to_device(context_.copies(), place.x.data(), x, x_bytes);
  context_.to_device(context_.copies(), place.targets.data(), targets, target_bytes);
  return hand_over(place, place.filled);
}

void CudaFeed::release() {
  if (host_read_ != nullptr) context_.wait(*host_read_);
}

}  // namespace lockstep
