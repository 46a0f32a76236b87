#include "train/doctor/doctor.h"

#include <ctime>

#include "backend/backend.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/nccl_facts.h"
#include "comm/run_agreed.h"
#include "train/config_batch.h"
#include "train/doctor/machine.h"
#include "train/loss_scaling.h"
#include "train/resources.h"

namespace lockstep {
namespace {

// A config's own start, up to the first sum of all ranks.
std::string try_to_start(const Config& config, const MpiEnvironment& environment) {
  run_agreed(environment.world(), [&] { check_world_size(config, environment.size()); });
  const Resources resources = claim_resources(config, environment);
  double ranks = 1;
  resources.communicator->all_reduce({&ranks, 1}, ReduceOp::sum);
  if (ranks != environment.size())
    throw_error("a sum of 1 over {} ranks gave {}: the communicator does not work", environment.size(), ranks);
  return resources.describe(resources.backend->arithmetic(activation_type(config.train)));
}

}  // namespace

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> found = gpu_libraries();
  if (const std::string nccl = nccl_version(); !nccl.empty()) found.push_back({"NCCL", nccl});
  const int runtime = gpu_facts().runtime;
  if (runtime > 0) found.insert(found.begin(), {"CUDA", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)});
  // The CPU's first: "oneDNN 2.6.3".
  const std::string cpu = make_cpu_backend({})->libraries();
  const size_t blank = cpu.find(' ');
  found.insert(found.begin(), {cpu.substr(0, blank), blank == std::string::npos ? "" : cpu.substr(blank + 1)});
  return found;
}

RunFacts facts_of_launch(const Environment& environment) {
  RunFacts facts;
  if (const Launcher* launcher = find_launcher(environment)) facts.launcher = launcher->name;
  facts.slurm = slurm_facts(environment);
  facts.now = std::time(nullptr);
  facts.libraries = library_versions();
  return facts;
}

void examine(const Config* config, const MpiEnvironment& environment, RunFacts& facts) {
  facts.size = environment.size();
  facts.nodes = environment.nodes();
  facts.mpi = mpi_facts();
  {
    MpiCommunicator ranks(environment.world(), {.timeout_seconds = 60});
    facts.ranks = gather_facts(machine_facts(environment), ranks);
  }
  if (config == nullptr) return;
  facts.wanted_device = config->device.kind;
  facts.wanted_communicator = config->distributed.backend;
  facts.oversubscribe = config->device.oversubscribe;
  try {
    facts.choice = try_to_start(*config, environment);
  } catch (const PoliteError& error) {  // the same on all ranks
    facts.refusal = error.what();
  }
}

}  // namespace lockstep
