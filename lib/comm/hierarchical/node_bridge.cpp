#include "comm/hierarchical/node_bridge.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto yields_before_sleep = std::chrono::seconds(1);

}  // namespace

NodeBridge::NodeBridge(MPI_Comm world, MPI_Comm node, const Placement& placement, const WaitPolicy& wait)
    : owners_(placement.fewest()),
      timeout_seconds_(wait.timeout_seconds),
      tests_before_yield_(wait.yield_at_once ? 1 : 200) {
  const int local_rank = mpi::rank(node), rank = mpi::rank(world);
  const bool owner = local_rank < owners_;
  mpi::OwnedComm comm = mpi::OwnedComm::split(world, owner ? local_rank : MPI_UNDEFINED, rank);
  if (!owner) return;
  std::vector<int> names(static_cast<size_t>(mpi::size(comm.get())));
  mpi::check(MPI_Allgather(&rank, 1, MPI_INT, names.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
  exchange_.emplace(std::move(comm), std::move(names), wait.activity);
}

int NodeBridge::owners(size_t count) const {
  return static_cast<int>(std::clamp<size_t>(count * sizeof(float) / slice_bytes, 1, static_cast<size_t>(owners_)));
}

void NodeBridge::start(std::span<float> slice, const Call& call) { exchange_->start(slice, call); }

bool NodeBridge::advance() { return exchange_->advance(); }

void NodeBridge::wait(Rendezvous& node) {
  const auto done = [&] {
    try {
      return exchange_->advance();
    } catch (const PeerFailure& failure) {  // the node's other ranks don't see it
      node.fail(failure.what());
    }
  };
  for (int test = 0; test < tests_before_yield_; ++test)
    if (done()) return;
  const Activity* activity = node.activity();
  const double limit = activity != nullptr ? activity->limit(timeout_seconds_) : timeout_seconds_;
  const auto start = Clock::now();
  while (!done()) {
    node.throw_if_aborted(exchange_->call());
    const auto waited = Clock::now() - start;
    if (std::chrono::duration<double>(waited).count() > limit) {
      const std::vector<int> late = exchange_->missing();
      node.fail(fmt::format("waited {:g} s in {} for {}", limit, exchange_->call().describe(activity),
                            name_ranks(late.data(), static_cast<int>(late.size()))));
    }
    if (waited < yields_before_sleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void NodeBridge::agree(Rendezvous& node) {
  if (!exchange_) return;
  exchange_->start({}, {node.sequence(), node.current()});
  wait(node);
}

}  // namespace lockstep
