// Settings of glibc's allocator for a program that makes large arrays again and again.
#pragma once

namespace lockstep {

// Large blocks come from the heap and stay there: by default each is mapped, page-faulted and unmapped anew, and the
// faults of MPI's per-call temporaries cost more than the all-reduce of 100 MB itself. Call once, before threads start.
// False when the C library refused a setting or isn't glibc; the program is then right, only slower.
bool keep_large_blocks();

}  // namespace lockstep
