#include "backend/memory.h"

#include <cstring>

namespace lockstep {
namespace {

class HostMemory final : public Memory {
 public:
  bool host() const override { return true; }
  Buffer allocate(size_t bytes) const override { return Buffer::host(bytes); }
  void upload(void* to, const void* host, size_t bytes) const override { move(to, host, bytes); }
  void download(void* host, const void* from, size_t bytes) const override { move(host, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) const override { move(to, from, bytes); }
  void zero(void* memory, size_t bytes) const override {
    if (bytes != 0) std::memset(memory, 0, bytes);
  }

 private:
  static void move(void* to, const void* from, size_t bytes) {
    if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
  }
};

}  // namespace

const Memory& host_memory() {
  static const HostMemory memory;  // without state
  return memory;
}

std::vector<float> Memory::downloaded(std::span<const float> values) const {
  std::vector<float> copy(values.size());
  download(copy, values);
  return copy;
}

std::span<const float> Memory::readable(std::span<const float> values, std::vector<float>& scratch) const {
  if (host()) return values;
  scratch.resize(values.size());
  download(scratch, values);
  return scratch;
}

}  // namespace lockstep
