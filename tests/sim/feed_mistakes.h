// Ten batches on their way to a GPU, with a mistake made on purpose: whether one shows under any order of the streams.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "backend/cuda/cuda_backend.h"

namespace lockstep::test {

struct FeedMistakes {
  bool reuse_host = false;  // what the host gave is written again before it has been copied
  int ignored_wait = -1;    // of all event waits
};

// Of each of the ten batches that `seen` holds, `floats` numbers a batch.
inline std::vector<double> means_of_batches(Backend& gpu, const Buffer& seen, size_t floats) {
  std::vector<double> means;
  for (size_t batch = 0; batch < 10; ++batch)
    means.push_back(gpu.optimizer_ops().sum_of_abs(floats, seen.as<float>().data() + batch * floats) /
                    static_cast<double>(floats));
  return means;
}

// run(seed, mistakes) gives the means of what plans read; all numbers of batch k are k + 1.
template <class Run>
int wrong_runs(const Run& run, const FeedMistakes& mistakes) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    wrong += run(seed, mistakes) != std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10} ? 1 : 0;
  return wrong;
}

// Two waits a batch: of what fills the place for the place, of the computation for what filled it.
template <class Run>
void check_deleted_waits_are_caught(const Run& run) {
  for (int batch = 2; batch < 10; ++batch) {
    CAPTURE(batch);
    CHECK(wrong_runs(run, {.ignored_wait = 2 * batch + 1}) > 0);
  }
  int caught = 0;
  for (int batch = 2; batch < 10; ++batch) caught += wrong_runs(run, {.ignored_wait = 2 * batch}) > 0 ? 1 : 0;
  CHECK(caught > 0);
}

}  // namespace lockstep::test
