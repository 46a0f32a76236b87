// How many threads a rank may use: the cores that the operating system allows, shared fairly by the node's ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

// The CPUs this process may run on, as a bit mask of 64 per word.
std::vector<unsigned long> allowed_cpus();
int count_cpus(const std::vector<unsigned long>& mask);

// Distinct cores that the ranks of a node may use together (collective over `node`). A launcher that binds each rank to
// a core of its own shows every rank one core; all of them together have as many as there are ranks.
int allowed_cores_of_node(MPI_Comm node);

// What is wrong with this many compute threads, and the cure; empty: nothing. own_cores: that this rank may run on,
// node_cores: that all local_size ranks of the node may together.
std::string thread_shortage(int threads, int own_cores, int local_size, int node_cores);

// max(1, allowed_cores / local_size)
int threads_per_rank(int allowed_cores, int local_size);

}  // namespace lockstep
