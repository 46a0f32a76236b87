#include "core/buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace lockstep {

Buffer::Buffer(void* data, size_t bytes, std::function<void(void*)> release)
    : data_(data), bytes_(bytes), release_(std::move(release)) {}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr && release_) release_(data_);
}

Buffer Buffer::host(size_t bytes) {
  if (bytes == 0) return {};
  const size_t padded = align_up(bytes);
  void* data = std::aligned_alloc(64, padded);
  if (data == nullptr) throw_error("out of memory: {} bytes", bytes);
  std::memset(data, 0, padded);
  return Buffer(data, bytes, [](void* memory) { std::free(memory); });
}

}  // namespace lockstep
