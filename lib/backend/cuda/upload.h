// Small arrays that a plan makes on the host and keeps on the device.
#pragma once

#include <algorithm>
#include <span>

#include "backend/cuda/context.h"

namespace lockstep::cuda {

// The host waits for the copy: for construction, not for a step.
template <class T>
Buffer upload(const Context& context, std::span<const T> values) {
  const Buffer host = context.pinned(values.size_bytes());
  std::ranges::copy(values, host.as<T>().begin());
  Buffer device = context.allocate(values.size_bytes());
  if (values.empty()) return device;
  context.to_device(context.compute(), device.data(), host.data(), host.bytes());
  context.synchronize(context.compute());
  return device;
}

}  // namespace lockstep::cuda
