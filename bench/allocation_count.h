// Heap allocations of the whole process, by who asked for them. Linking allocation_count.cpp replaces malloc and
// operator new of the program; no_allocation_count.cpp stands in where the C library or a sanitizer forbids that.
#pragma once

#include <cstdint>

namespace lockstep::bench {

struct AllocationCount {
  int64_t own = 0;     // this program, and the libraries that work for it (C++ runtime, fmt, ...)
  int64_t onednn = 0;  // from inside oneDNN and the threads it uses
  int64_t mpi = 0;     // from inside the MPI library
};

bool allocations_are_counted();
// Looks up where the libraries lie. Until then every allocation is `own`.
void find_allocating_libraries();
// Since the start of the program, all threads.
AllocationCount allocation_count();

}  // namespace lockstep::bench
