// Owned memory, aligned to 64 bytes at least, freed by whoever made it (heap, shared window, device).
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace lockstep {

class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, size_t bytes, std::function<void(void*)> release);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Zeroed host memory with every page touched, so that a step meets no page fault. Throws Error when there is none.
  static Buffer host(size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::function<void(void*)> release_;
};

constexpr size_t align_up(size_t bytes, size_t alignment = 64) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace lockstep
