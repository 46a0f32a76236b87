// Which node each rank is on, and whether a node's ranks are a branch of the tree of sums (comm/sum_tree.h).
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace lockstep {

struct Placement {
  std::vector<int> node_of;  // by rank; nodes are numbered from 0 by their lowest rank

  int nodes() const;
  std::vector<int> ranks_per_node() const;
  int fewest() const;  // ranks on the emptiest node
};

// Collective over `world`; `node` holds the ranks of this rank's node.
Placement gather_placement(MPI_Comm world, MPI_Comm node);

// Empty when every node's sum is a branch of the tree, so that adding node by node gives the bits of adding rank by
// rank: neighbouring ranks, the same power of two on every node but perhaps fewer on the last. Else the reason, for
// people.
std::string obstacle_to_sums_by_node(const Placement& placement);

}  // namespace lockstep
