// Under a sanitizer malloc is the sanitizer's, and nothing is counted.
#include "bench/allocation_count.h"

namespace lockstep::bench {

bool allocations_are_counted() { return false; }
void find_allocating_libraries() {}
AllocationCount allocation_count() { return {}; }

}  // namespace lockstep::bench
