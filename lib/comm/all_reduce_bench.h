// What an all-reduce costs a training step here: this library's communicators beside MPI_Allreduce in one run, with a
// gradient that is rewritten before every call (a buffer that nobody touched stays in caches and flatters) and followed
// by the update of as many parameters, which are read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/mpi_env.h"

namespace lockstep {

// Medians over the measured blocks, which count with their slowest rank.
struct AllReduceCost {
  std::string path;
  double latency_us = 0;   // of the call; of a sharded update: with this rank's share of the update
  double marginal_us = 0;  // of write + reduce + update + read, less the same without reduce
  // Medians of MPI_Allreduce's cost divided by this one's, taken side by side; above 1: this path is faster. At most
  // 100: a sharded update may cost nothing.
  double latency_ratio = 1, marginal_ratio = 1;
};

class AllReduceBench {
 public:
  // Collective, like the rest. Throws Error when a communicator can't be made. Both outlive this object.
  AllReduceBench(const MpiEnvironment& environment, const OptimizerOps& ops);
  ~AllReduceBench();

  // The costs for an array of so many bytes (a multiple of four), MPI_Allreduce first. blocks: 0 for what suits the
  // size.
  std::vector<AllReduceCost> measure(size_t bytes, int blocks);

 private:
  struct Path;
  const MpiEnvironment& environment_;
  const OptimizerOps& ops_;
  std::vector<Path> paths_;
};

// A word from one core to another and back through shared memory, between local ranks 0 and 1; 0 when the node has one
// rank. Collective.
double core_round_trip_us(const MpiEnvironment& environment);

// What every rank must move at least, 2 (n-1)/n of the array, in GB/s.
double bus_gigabytes_per_second(size_t bytes, double us, int ranks);

}  // namespace lockstep
