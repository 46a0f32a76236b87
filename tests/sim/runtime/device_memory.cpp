#include "sim/runtime/device_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace lockstep::sim {
namespace {

constexpr size_t page = 4096, reserved = size_t{8} << 30;  // addresses, not memory
constexpr int poison = 0xff;                               // floats of it are NaN

size_t pages(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

DeviceMemory& DeviceMemory::instance() {
  static DeviceMemory memory;
  return memory;
}

DeviceMemory::DeviceMemory() {
  void* found = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(found);
}

void* DeviceMemory::allocate(size_t bytes) {
  const size_t length = pages(bytes);
  if (length + page > reserved - used_ || bytes > free_bytes()) return nullptr;
  std::byte* memory = base_ + used_;
  used_ += length + page;
  live_[memory] = bytes;
  mprotect(memory, length, PROT_READ | PROT_WRITE);
  std::memset(memory, poison, length);
  mprotect(memory, length, PROT_NONE);
  return memory;
}

bool DeviceMemory::free(void* memory) {
  const auto found = live_.find(static_cast<std::byte*>(memory));
  if (found == live_.end()) return false;
  madvise(found->first, pages(found->second), MADV_DONTNEED);
  live_.erase(found);
  return true;
}

size_t DeviceMemory::free_bytes() const {
  size_t taken = 0;
  for (const auto& [memory, bytes] : live_) taken += bytes;
  return all_ - taken;
}

bool DeviceMemory::holds(const void* memory, size_t bytes) const {
  auto* first = static_cast<std::byte*>(const_cast<void*>(memory));
  auto next = live_.upper_bound(first);
  if (next == live_.begin()) return false;
  --next;
  return first + bytes <= next->first + next->second;
}

void DeviceMemory::protect(bool open) const {
  for (const auto& [memory, bytes] : live_) mprotect(memory, pages(bytes), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void DeviceMemory::reset(size_t bytes) {
  all_ = bytes;
  copied_in_ = 0;
  live_.clear();
  madvise(base_, used_, MADV_DONTNEED);
  mprotect(base_, used_, PROT_NONE);
  used_ = 0;
}

}  // namespace lockstep::sim
