// malloc and operator new of the program, counted and handed on to glibc. Who asked is told from the return address.
#include "bench/allocation_count.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace lockstep::bench {
namespace {

enum Owner { kOwn, kOneDnn, kMpi, kOwners };

struct Range {
  uintptr_t begin, end;
  Owner owner;
};
constexpr int kMaxRanges = 256;
Range ranges[kMaxRanges];
std::atomic<int> range_count{0};
std::atomic<int64_t> counts[kOwners];

Owner owner_of_library(const char* path) {
  for (const char* part : {"dnnl", "libgomp", "libomp", "libiomp"}) {  // OpenMP runs for oneDNN alone
    if (std::strstr(path, part) != nullptr) return kOneDnn;
  }
  for (const char* part : {"libmpi", "libopen-", "mca_", "libpmix", "libucp", "libuct", "libucs"}) {
    if (std::strstr(path, part) != nullptr) return kMpi;
  }
  return kOwn;
}

int add_library(dl_phdr_info* info, size_t, void*) {
  const Owner owner = owner_of_library(info->dlpi_name);
  for (int i = 0; owner != kOwn && i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const int at = range_count;
    if (header.p_type != PT_LOAD || at == kMaxRanges) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    ranges[at] = {begin, begin + header.p_memsz, owner};
    range_count = at + 1;
  }
  return 0;
}

void count(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  Owner owner = kOwn;
  for (int i = 0, n = range_count.load(std::memory_order_acquire); i < n; ++i) {
    if (at >= ranges[i].begin && at < ranges[i].end) owner = ranges[i].owner;
  }
  counts[owner].fetch_add(1, std::memory_order_relaxed);
}

void* checked(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

bool allocations_are_counted() { return true; }

void find_allocating_libraries() {
  range_count = 0;
  dl_iterate_phdr(add_library, nullptr);
}

AllocationCount allocation_count() { return {.own = counts[kOwn], .onednn = counts[kOneDnn], .mpi = counts[kMpi]}; }

}  // namespace lockstep::bench

using lockstep::bench::checked;
using lockstep::bench::count;

extern "C" {

void* malloc(size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}

void* calloc(size_t members, size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_calloc(members, size);
}

void* realloc(void* old, size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) noexcept {
  count(__builtin_return_address(0));
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

}  // extern "C"

void* operator new(size_t size) {
  count(__builtin_return_address(0));
  return checked(__libc_malloc(size));
}

void* operator new[](size_t size) {
  count(__builtin_return_address(0));
  return checked(__libc_malloc(size));
}

void* operator new(size_t size, std::align_val_t alignment) {
  count(__builtin_return_address(0));
  return checked(__libc_memalign(static_cast<size_t>(alignment), size));
}

void* operator new[](size_t size, std::align_val_t alignment) {
  count(__builtin_return_address(0));
  return checked(__libc_memalign(static_cast<size_t>(alignment), size));
}

void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { std::free(block); }
