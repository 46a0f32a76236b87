#include "backend/cuda/step_values.h"

#include "backend/cuda/context.h"
#include "core/error.h"

namespace lockstep::cuda {

void StepValues::prepare() {
  if (device_.bytes() != 0) return;
  values_ = Buffer::host(room);
  device_ = context_.allocate(room);
  for (Place& place : places_) place.host = context_.pinned(room);
}

void StepValues::enter(Mode mode) {
  mode_ = mode;
  used_ = granule;
}

const void* StepValues::put(const void* value, size_t bytes) {
  const size_t offset = used_;
  used_ += (bytes + granule - 1) / granule * granule;
  if (used_ > room) throw_error("a recorded step has more than {} bytes of numbers that change", room);
  std::memcpy(host() + offset, value, bytes);
  return static_cast<const std::byte*>(device_.data()) + offset;
}

void StepValues::send(uint64_t key) {
  std::memcpy(host(), &key, sizeof(key));
  Place& place = places_[sends_++ % places_.size()];
  context_.wait(place.sent);
  std::memcpy(place.host.data(), host(), used_);
  context_.to_device(context_.compute(), device_.data(), place.host.data(), used_);
  context_.compute().record(place.sent);
}

}  // namespace lockstep::cuda
