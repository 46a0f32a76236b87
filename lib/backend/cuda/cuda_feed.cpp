#include "backend/cuda/cuda_feed.h"

#include "core/error.h"

namespace lockstep {

CudaFeed::CudaFeed(const cuda::Context& context, size_t x_bytes, size_t target_bytes) : context_(context) {
  for (Place& place : places_) {
    place.x = context.allocate(x_bytes);
    place.targets = context.allocate(target_bytes);
  }
}

Feed::Batch CudaFeed::upload(const void* x, size_t x_bytes, const void* targets, size_t target_bytes) {
  // Whatever reads the last batch has been asked for by now.
  if (uploads_ > 0) context_.compute().record(places_[(uploads_ - 1) % places_.size()].used);
  const Place& place = places_[uploads_++ % places_.size()];
  if (x_bytes > place.x.bytes() || target_bytes > place.targets.bytes())
    throw_error("a batch of {} and {} bytes: expected at most {} and {}", x_bytes, target_bytes, place.x.bytes(),
                place.targets.bytes());
  context_.copies().wait(place.used);
  context_.to_device(context_.copies(), place.x.data(), x, x_bytes);
  context_.to_device(context_.copies(), place.targets.data(), targets, target_bytes);
  context_.copies().record(place.filled);
  context_.compute().wait(place.filled);
  return {place.x.data(), place.targets.data()};
}

void CudaFeed::release() {
  if (uploads_ > 0) context_.wait(places_[(uploads_ - 1) % places_.size()].filled);
}

}  // namespace lockstep
