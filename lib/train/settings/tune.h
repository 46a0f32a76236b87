// The threads per rank and the bucket size with which a step takes the least time, found by trying.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/mpi_env.h"
#include "train/config.h"

namespace lockstep {

struct TuneTrial {
  int64_t threads = 0;
  double bucket_mb = 0;
  double seconds = 0;  // per step, the median of the slowest rank
};

// What is tried: the threads that the cores of a node allow each rank, by powers of two; with several ranks, bucket
// sizes from 1 MiB to more than all gradients. The config's own values come first.
std::vector<TuneTrial> tune_trials(const Config& config, int allowed_cores, int local_ranks, int ranks);

// Runs `steps` steps of each, after some to warm up, all of them twice, in turn; the better time counts. Nothing is
// written. Collective; the same result on all ranks.
void measure_trials(const Config& config, const MpiEnvironment& environment, int64_t steps,
                    std::vector<TuneTrial>& trials);

// The fastest; the first, the config's own, unless another is faster by more than 2 %.
const TuneTrial& best_trial(const std::vector<TuneTrial>& trials);
std::string tune_table(const std::vector<TuneTrial>& trials);

}  // namespace lockstep
