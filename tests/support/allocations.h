// How often this program has asked the heap for memory, so that a test can show that a step doesn't.
#pragma once

#include <cstdint>

namespace lockstep::test {

int64_t allocations();  // calls of operator new since the start, over all threads

}  // namespace lockstep::test
