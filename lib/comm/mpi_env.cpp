#include "comm/mpi_env.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "comm/cores.h"
#include "comm/launcher.h"
#include "comm/run_agreed.h"

namespace lockstep {
namespace {

// Taken before MPI_Init, which sets some of these itself.
std::map<std::string, std::string> launcher_variables() {
  std::map<std::string, std::string> found;
  for (const Launcher& launcher : launchers()) {
    for (const char* name : {launcher.size, launcher.rank})
      if (const char* value = std::getenv(name)) found[name] = value;
  }
  return found;
}

void start_mpi() {
  const auto before = launcher_variables();
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
    throw_error("MPI_Init_thread failed");
  // Every rank sees the same here, so each says it and leaves MPI in order.
  run_agreed(MPI_COMM_WORLD, [&] {
    check_thread_level(provided);
    const auto get = [&](const char* name) {
      const auto entry = before.find(name);
      return entry == before.end() ? nullptr : entry->second.c_str();
    };
    const std::string mismatch = launch_mismatch(get, mpi::size(MPI_COMM_WORLD));
    if (!mismatch.empty()) throw Error(mismatch);
  });
}

}  // namespace

const char* thread_level_name(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  return level == MPI_THREAD_MULTIPLE ? "MPI_THREAD_MULTIPLE" : "an unknown level";
}

void check_thread_level(int provided) {
  if (provided >= MPI_THREAD_MULTIPLE) return;
  throw_error("MPI offers {}, MPI_THREAD_MULTIPLE is needed: use an MPI library built with thread support",
              thread_level_name(provided));
}

MpiEnvironment::Runtime::Runtime() : exceptions(std::uncaught_exceptions()) {
  int initialized = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  owned = initialized == 0;
  if (!owned) {
    mpi::check(MPI_Query_thread(&provided), "MPI_Query_thread");
    check_thread_level(provided);
    return;
  }
  try {
    start_mpi();
  } catch (const PoliteError&) {
    MPI_Finalize();
    throw;
  }
}

MpiEnvironment::Runtime::~Runtime() {
  if (owned && std::uncaught_exceptions() <= exceptions) MPI_Finalize();
}

MpiEnvironment::MpiEnvironment(const Pretend& pretend) {
  world_ = mpi::OwnedComm::duplicate(MPI_COMM_WORLD);
  rank_ = mpi::rank(world());
  size_ = mpi::size(world());
  node_ = mpi::OwnedComm::split_by_shared_memory(world(), rank_);
  if (pretend) node_ = mpi::OwnedComm::split(node(), pretend(rank_, size_), rank_);
  local_rank_ = mpi::rank(node());
  local_size_ = mpi::size(node());
  {
    const mpi::OwnedComm leaders = mpi::OwnedComm::split(world(), local_rank_ == 0 ? 0 : MPI_UNDEFINED, rank_);
    int place[2] = {0, 1};
    if (local_rank_ == 0) place[0] = mpi::rank(leaders.get()), place[1] = mpi::size(leaders.get());
    mpi::check(MPI_Bcast(place, 2, MPI_INT, 0, node()), "MPI_Bcast");
    node_index_ = place[0];
    nodes_ = place[1];
  }
  allowed_cores_ = allowed_cores_of_node(node());
  threads_ = std::min(threads_per_rank(allowed_cores_, local_size_), std::max(1, count_cpus(allowed_cpus())));
}

MpiEnvironment::~MpiEnvironment() = default;

}  // namespace lockstep
