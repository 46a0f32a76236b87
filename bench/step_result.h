// What bench_step measures, and the JSON line that says it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/allocation_count.h"

namespace lockstep::bench {

struct Counts {  // of one rank, at one moment
  int64_t page_faults = 0;
  AllocationCount allocations;
};
Counts counts_now();

struct StepResult {
  int world_size = 1;        // of one training: 1 for each of several independent ones
  bool independent = false;  // one training per rank, side by side, instead of one over all
  int64_t batch = 0;         // samples per rank and step
  int threads = 1;
  std::string device, communicator, isa, arithmetic;
  bool native = true;      // false: products are computed in fp32 for want of hardware
  int64_t loss_steps = 0;  // 0: the loss was not asked for
  double loss = 0;         // on the validation set, with the parameters after loss_steps steps
  int64_t steps = 0;
  std::vector<double> block_us;     // microseconds per step of each block of steps, this rank
  Counts before_steady, in_steady;  // up to the timed steps; during them
};

// Joins the ranks' results (collective): block times are the slowest rank's, or, for independent trainings, those of
// their mean rate; counts are sums over ranks. The line is the same on every rank.
std::string to_json(const StepResult& mine, MPI_Comm world);

}  // namespace lockstep::bench
