#include "comm/hierarchical/placement.h"

#include <algorithm>
#include <bit>

#include "comm/mpi/mpi_call.h"
#include "core/error.h"

namespace lockstep {

int Placement::nodes() const { return 1 + *std::max_element(node_of.begin(), node_of.end()); }

std::vector<int> Placement::ranks_per_node() const {
  std::vector<int> counts(static_cast<size_t>(nodes()));
  for (const int node : node_of) ++counts[static_cast<size_t>(node)];
  return counts;
}

int Placement::fewest() const {
  const std::vector<int> counts = ranks_per_node();
  return *std::min_element(counts.begin(), counts.end());
}

Placement gather_placement(MPI_Comm world, MPI_Comm node) {
  int lowest = mpi::rank(world);
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
  std::vector<int> lowest_of(static_cast<size_t>(mpi::size(world)));
  mpi::check(MPI_Allgather(&lowest, 1, MPI_INT, lowest_of.data(), 1, MPI_INT, world), "MPI_Allgather");
  std::vector<int> firsts = lowest_of;
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  Placement placement;
  for (const int first : lowest_of)
    placement.node_of.push_back(
        static_cast<int>(std::lower_bound(firsts.begin(), firsts.end(), first) - firsts.begin()));
  return placement;
}

std::string obstacle_to_sums_by_node(const Placement& placement) {
  const std::vector<int> counts = placement.ranks_per_node();
  if (!std::is_sorted(placement.node_of.begin(), placement.node_of.end()))
    return "ranks of one node are not neighbours (srun --distribution=block, mpirun --map-by slot place them so)";
  const int first = counts.front(), last = counts.back();
  if (counts.size() > 1 && !std::has_single_bit(static_cast<unsigned>(first)))
    return fmt::format("{} ranks on a node are not a power of two", first);
  for (size_t node = 0; node + 1 < counts.size(); ++node)
    if (counts[node] != first)
      return fmt::format("nodes hold different numbers of ranks, {} and {}", first, counts[node]);
  if (last > first) return fmt::format("the last node holds more ranks than the others, {} and {}", last, first);
  return "";
}

}  // namespace lockstep
