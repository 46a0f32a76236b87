// "Device" memory: pages of this process that nobody may touch, except while an operation of a stream runs. An
// allocation is poisoned when it is made, followed by a page that is never open, and never used again after it is
// freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace lockstep::sim {

class DeviceMemory {
 public:
  static DeviceMemory& instance();

  void* allocate(size_t bytes);                        // null: full
  bool free(void* memory);                             // false: not a live allocation
  bool holds(const void* memory, size_t bytes) const;  // all of it within one live allocation
  size_t live() const { return live_.size(); }
  size_t all_bytes() const { return all_; }
  size_t free_bytes() const;
  void count_in(size_t bytes) { copied_in_ += bytes; }  // from the host
  uint64_t copied_in() const { return copied_in_; }
  void reset(size_t bytes);

  // Open as long as one of these lives.
  class Open {
   public:
    Open() { instance().protect(true); }
    ~Open() { instance().protect(false); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
  };

 private:
  DeviceMemory();
  void protect(bool open) const;
  std::byte* base_ = nullptr;
  size_t used_ = 0, all_ = size_t{8} << 30;
  uint64_t copied_in_ = 0;
  std::map<std::byte*, size_t> live_;  // pages, bytes asked for
};

}  // namespace lockstep::sim
