// Numbers to and from a simulated (or real) GPU, for tests.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "backend/cuda/context.h"

namespace lockstep::test {

// Queues a copy of `values` to device memory; the host memory lives as long as this object.
class Upload {
 public:
  Upload(cuda::Context& context, const cuda::Stream& stream, std::span<const float> values, float* device)
      : host_(context.pinned(values.size_bytes())) {
    if (values.empty()) return;
    std::memcpy(host_.data(), values.data(), values.size_bytes());
    context.to_device(stream, device, host_.data(), values.size_bytes());
  }

 private:
  Buffer host_;
};

// What the device memory holds once the stream has come so far.
inline std::vector<float> download(cuda::Context& context, const cuda::Stream& stream, const float* device,
                                   size_t count) {
  const Buffer host = context.pinned(count * sizeof(float));
  context.to_host(stream, host.data(), device, host.bytes());
  context.synchronize(stream);
  return {host.as<float>().begin(), host.as<float>().end()};
}

}  // namespace lockstep::test
