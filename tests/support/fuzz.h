// Feeds a reader damaged copies of the files in tests/corpus/NAME: for a second, or with LOCKSTEP_LONG_TESTS for a
// minute. A file that once did harm is kept there, so that it is tried in every run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::test {

struct FuzzCount {
  int64_t accepted = 0, refused = 0;
};

// `read` returns or throws Error; whatever else it throws or does is the failure looked for. The corpus as it is comes
// first. Cases are the same in every run but for how many there are; LOCKSTEP_FUZZ_SEED=N takes others.
FuzzCount fuzz(const std::string& name, const std::function<void(const std::string& bytes)>& read);

}  // namespace lockstep::test
