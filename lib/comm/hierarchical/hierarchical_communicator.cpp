#include "comm/hierarchical/hierarchical_communicator.h"

#include <algorithm>

#include "comm/run_agreed.h"
#include "core/error.h"
#include "core/log.h"

namespace lockstep {
namespace {

Placement checked_placement(MPI_Comm world, MPI_Comm node) {
  Placement placement = gather_placement(world, node);
  const std::string obstacle = obstacle_to_sums_by_node(placement);
  if (!obstacle.empty()) throw_error("communicator hierarchical: {}", obstacle);
  return placement;
}

// A message that left this rank may still need its hand to reach the other node.
void drive_mpi() {
  int flag = 0;
  mpi::check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

WaitPolicy watched(WaitPolicy policy, const Activity& activity) {
  policy.activity = &activity;
  return policy;
}

ShmOptions node_options(MPI_Comm world, MPI_Comm node, WaitPolicy wait, SliceReduction& bridge) {
  wait.first_rank = mpi::rank(world) - mpi::rank(node);
  wait.idle = drive_mpi;
  wait.timeout_seconds += 1;  // who waits for an owner of this node lets that owner say whom it waits for
  return {.wait = wait, .private_memory_if_full = false, .beyond = &bridge};
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(MPI_Comm world, MPI_Comm node, const WaitPolicy& wait)
    : world_(world, MpiOptions{.timeout_seconds = wait.timeout_seconds, .activity = &activity()}),
      bridge_(world, node, checked_placement(world, node), watched(wait, activity())),
      node_(node, node_options(world, node, watched(wait, activity()), bridge_)) {}

Buffer HierarchicalCommunicator::allocate(size_t bytes) {
  const auto asked = all_gather(std::as_bytes(std::span(&bytes, 1)));
  if (std::any_of(asked.begin(), asked.end(), [&](const auto& theirs) { return theirs != asked.front(); }))
    throw_error("allocate: ranks ask for different sizes, this one for {} bytes", bytes);
  Buffer window;
  try {
    run_agreed(world_, [&] { window = node_.allocate(bytes); });
  } catch (const PoliteError& error) {
    if (rank() == 0) log::warning("{}; each rank has this memory to itself instead, which costs time", error.what());
    return Buffer::host(bytes);
  }
  return window;
}

// The other ranks of the node, and this rank's fellows on other nodes, might be in a sum, where world_ doesn't see
// them.
void HierarchicalCommunicator::agree(Collective kind, uint64_t count, uint64_t where) {
  node_.reduction().agree(kind, count, where);
  bridge_.agree(node_.reduction().meeting());
  node_.reduction().meeting().sync();  // ranks that own no slice learn from those that do
}

void HierarchicalCommunicator::all_reduce(std::span<double> values, ReduceOp op) {
  agree(Collective::all_reduce, values.size(), static_cast<uint64_t>(op));
  world_.all_reduce(values, op);
}

void HierarchicalCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  agree(Collective::broadcast, bytes.size(), static_cast<uint64_t>(root));
  world_.broadcast(bytes, root);
}

std::vector<std::vector<std::byte>> HierarchicalCommunicator::all_gather(std::span<const std::byte> mine) {
  agree(Collective::all_gather, 0, 0);
  return world_.all_gather(mine);
}

void HierarchicalCommunicator::barrier() {
  agree(Collective::barrier, 0, 0);
  world_.barrier();
}

}  // namespace lockstep
