#include "comm/factory.h"

#include <fmt/ranges.h>

#include "comm/choose.h"
#include "comm/hierarchical/hierarchical_communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/run_agreed.h"
#include "comm/serial_communicator.h"
#include "comm/shm/shm_communicator.h"

namespace lockstep {
namespace {

constexpr double budget_of_choice = 0.25;  // seconds

using Result = std::unique_ptr<Communicator>;

Result make_serial(const MpiEnvironment& env, double, std::string& why) {
  if (env.size() != 1) throw_error("communicator serial: needs 1 rank, started with {}", env.size());
  why = "chosen in the configuration";
  return std::make_unique<SerialCommunicator>();
}

Result make_mpi(const MpiEnvironment& env, double timeout_seconds, std::string& why) {
  why = "chosen in the configuration";
  return std::make_unique<MpiCommunicator>(env.world(), MpiOptions{.timeout_seconds = timeout_seconds});
}

WaitPolicy wait_policy(const MpiEnvironment& env, double timeout_seconds) {
  return {.timeout_seconds = timeout_seconds, .yield_at_once = env.oversubscribed()};
}

Result shared_memory(const MpiEnvironment& env, double timeout_seconds, bool private_memory_if_full) {
  if (env.local_size() != env.size())
    throw_error("communicator shm: all ranks must be on one node, they are on {}: use mpi or auto", env.nodes());
  ShmOptions options;
  options.wait = wait_policy(env, timeout_seconds);
  options.private_memory_if_full = private_memory_if_full;
  return std::make_unique<ShmCommunicator>(env.world(), options);
}

Result make_shm(const MpiEnvironment& env, double timeout_seconds, std::string& why) {
  why = "chosen in the configuration";
  return shared_memory(env, timeout_seconds, false);
}

// Null, and why not, where sums can't be made node by node.
Result by_node(const MpiEnvironment& env, double timeout_seconds, std::string& why_not) {
  Result result;
  try {
    run_agreed(env.world(), [&] {
      result = std::make_unique<HierarchicalCommunicator>(env.world(), env.node(), wait_policy(env, timeout_seconds));
    });
  } catch (const PoliteError& error) {
    why_not = error.what();
    result.reset();  // another rank's failure
  }
  return result;
}

Result make_hierarchical(const MpiEnvironment& env, double timeout_seconds, std::string& why) {
  std::string why_not;
  if (Result result = by_node(env, timeout_seconds, why_not)) {
    why = "chosen in the configuration";
    return result;
  }
  Result result = make_mpi(env, timeout_seconds, why);
  why = why_not;
  return result;
}

Result make_for_nodes(const MpiEnvironment& env, double timeout_seconds, std::string& why) {
  std::string detail;
  Result candidates[2] = {make_mpi(env, timeout_seconds, why), by_node(env, timeout_seconds, detail)};
  size_t chosen = 0;
  if (candidates[1] != nullptr) chosen = choose_fastest(candidates, budget_of_choice, detail);
  why = fmt::format("{} ranks on {} nodes; {}", env.size(), env.nodes(), detail);
  return std::move(candidates[chosen]);
}

Result make_auto(const MpiEnvironment& env, double timeout_seconds, std::string& why) {
  Result result;
  if (env.size() == 1) {
    result = make_serial(env, timeout_seconds, why);
    why = "one rank";
  } else if (env.nodes() > 1) {
    result = make_for_nodes(env, timeout_seconds, why);
  } else {
    try {
      result = shared_memory(env, timeout_seconds, true);
      why = fmt::format("{} ranks on one node", env.size());
    } catch (const PoliteError& error) {  // the same on all ranks, so all fall back together
      result = make_mpi(env, timeout_seconds, why);
      why = error.what();
    }
  }
  return result;
}

Result make_nccl(const MpiEnvironment&, double, std::string&) {
  throw PoliteError("distributed.backend nccl: sums what lies on GPUs, which needs device.kind: cuda");
}

struct Entry {
  std::string_view name;
  Result (*make)(const MpiEnvironment&, double timeout_seconds, std::string& why);
};

constexpr Entry table[] = {{"auto", make_auto},
                           {"serial", make_serial},
                           {"shm", make_shm},
                           {"mpi", make_mpi},
                           {"hierarchical", make_hierarchical},
                           {"nccl", make_nccl}};

}  // namespace

std::vector<std::string_view> communicator_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : table) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Communicator> make_communicator(std::string_view kind, const MpiEnvironment& environment,
                                                double timeout_seconds, std::string* why) {
  for (const Entry& entry : table) {
    if (entry.name != kind) continue;
    std::string reason;
    auto made = entry.make(environment, timeout_seconds, reason);
    if (why != nullptr) *why = reason;
    return made;
  }
  throw_error("distributed.backend: unknown communicator {}, known are {}", kind,
              fmt::join(communicator_names(), ", "));
}

}  // namespace lockstep
