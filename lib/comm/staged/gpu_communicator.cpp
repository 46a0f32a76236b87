#include "comm/gpu_communicator.h"

#include "backend/cuda/context.h"
#include "comm/factory.h"
#include "comm/gpu_placement.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/nccl_facts.h"
#include "comm/nccl_settings.h"
#include "comm/run_agreed.h"
#include "comm/staged/staged_communicator.h"

namespace lockstep {
namespace {

// "ranks 0 and 1 hold the same GPU, ...", empty: every rank has its own. The same on all ranks.
std::string shared_gpus(const MpiEnvironment& environment, const cuda::Context& context, double timeout_seconds) {
  MpiCommunicator ranks(environment.world(), {.timeout_seconds = timeout_seconds});
  const GpuFacts facts = gpu_facts();
  std::vector<Gpu> mine;
  run_agreed(ranks, [&] { mine.push_back(gpu_in_use(facts, context.device())); });
  std::vector<PlacedGpu> placed;
  for (const RankGpus& rank : gather_gpus(ranks, environment, mine))
    placed.push_back({static_cast<int>(placed.size()), rank.host, rank.visible.front()});
  return shared_gpu_text(placed);
}

}  // namespace

std::unique_ptr<Communicator> make_gpu_communicator(std::string_view kind, const MpiEnvironment& environment,
                                                    cuda::Context& context, double timeout_seconds, std::string& why,
                                                    const std::string& host_sums) {
  const std::string shared = shared_gpus(environment, context, timeout_seconds);
  const bool built = !nccl_version().empty();
  if (kind == "nccl" && !built)
    throw PoliteError("distributed.backend nccl: this build has no NCCL; write distributed.backend: auto");
  if (kind == "nccl" && !shared.empty())
    throw PoliteError("distributed.backend nccl: " + shared + ", which NCCL refuses; write distributed.backend: auto");
  if (kind == "nccl" && !host_sums.empty())
    throw PoliteError("distributed.backend nccl: " + host_sums +
                      ", which NCCL does not; write distributed.backend: auto");
  if (kind == "nccl" || (kind == "auto" && built && shared.empty() && host_sums.empty())) {
    const std::string settings = nccl_settings();
    why = fmt::format("{}; NCCL {}, {}",
                      kind == "nccl" ? "chosen in the configuration" : "every rank has a GPU of its own",
                      nccl_version(), settings.empty() ? "no NCCL_* variable set" : settings);
    return make_nccl_communicator(environment, context, timeout_seconds);
  }
  auto host = make_communicator(kind, environment, timeout_seconds, &why);
  const std::string reason = !built ? "this build has no NCCL" : shared.empty() ? host_sums : shared;
  if (kind == "auto") why = reason + "; " + why;
  return std::make_unique<StagedCommunicator>(std::move(host), context);
}

}  // namespace lockstep
