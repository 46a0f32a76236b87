// Where a backend keeps its arrays, and how numbers get there and back. On a CPU that is plain memory. What a GPU does
// is queued behind everything it was told before, so nobody has to think of its streams.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/buffer.h"

namespace lockstep {

class Memory {
 public:
  virtual ~Memory() = default;
  virtual bool host() const = 0;                    // the host may follow pointers to it
  virtual Buffer allocate(size_t bytes) const = 0;  // zeroed; not for use during a step

  // The host memory, of whatever kind, may change at once.
  virtual void upload(void* to, const void* host, size_t bytes) const = 0;
  virtual void download(void* host, const void* from, size_t bytes) const = 0;  // returns when the bytes are there
  // Within this memory.
  virtual void copy(void* to, const void* from, size_t bytes) const = 0;
  virtual void zero(void* memory, size_t bytes) const = 0;

  // The same for floats; both spans of one length.
  void upload(std::span<float> to, std::span<const float> host) const {
    upload(to.data(), host.data(), host.size_bytes());
  }
  void download(std::span<float> host, std::span<const float> from) const {
    download(host.data(), from.data(), from.size_bytes());
  }
  void copy(std::span<float> to, std::span<const float> from) const { copy(to.data(), from.data(), from.size_bytes()); }
  void zero(std::span<float> values) const { zero(values.data(), values.size_bytes()); }

  std::vector<float> downloaded(std::span<const float> values) const;
  // Where the host can read the values: where they are, or in `scratch`, as they are now.
  std::span<const float> readable(std::span<const float> values, std::vector<float>& scratch) const;
};

const Memory& host_memory();

}  // namespace lockstep
