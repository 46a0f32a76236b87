#include "comm/malloc_policy.h"

#include <malloc.h>

#include <climits>

namespace lockstep {

bool keep_large_blocks() {
#if defined(__GLIBC__)
  // Some versions cap the first at 32 MiB and refuse more.
  const bool mapped = mallopt(M_MMAP_THRESHOLD, 1 << 30) == 1 || mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1;
  const bool trimmed = mallopt(M_TRIM_THRESHOLD, INT_MAX) == 1;
  const bool padded = mallopt(M_TOP_PAD, 256 << 20) == 1;
  return mapped && trimmed && padded;
#else
  return false;
#endif
}

}  // namespace lockstep
