#include "train/resources.h"

#include "backend/factory.h"
#include "backend/gpu.h"
#include "comm/factory.h"
#include "comm/gpu_communicator.h"
#include "comm/gpu_placement.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/run_agreed.h"
#include "core/cpu_features.h"

namespace lockstep {

std::string Resources::describe(const Arithmetic& arithmetic) const {
  std::string device = fmt::format("{} ({})", backend->name(), name(detect_isa()));
  if (gpu >= 0) device = fmt::format("{} {}", backend->name(), gpu);
  if (!why_device.empty()) device += " (" + why_device + ")";
  return fmt::format("{} thread(s) each, {}, {}, communicator {}{}", threads, device, arithmetic.text,
                     communicator->name(), why.empty() ? "" : ": " + why);
}

namespace {

// device.kind auto: GPUs where every rank has one of its own, else the CPU. The same on all ranks.
std::string choose_kind(Communicator& ranks, const MpiEnvironment& environment, std::string& why) {
  const GpuFacts facts = gpu_facts();
  double any = facts.visible.empty() ? 0 : 1;
  ranks.all_reduce({&any, 1}, ReduceOp::max);
  if (any == 0) return "cpu";
  const std::vector<RankGpus> seen = gather_gpus(ranks, environment, facts.visible);
  const GpuPlacement placement = place_on_gpus(seen, false);
  for (size_t rank = 0; rank < placement.choices.size(); ++rank) {
    if (placement.choices[rank].index >= 0) continue;
    why = fmt::format("rank {} has no GPU of its own", rank);
    return "cpu";
  }
  if (!placement.shared.empty()) {
    why = placement.shared;
    return "cpu";
  }
  why = "every rank has a GPU of its own";
  return "cuda";
}

// Why sums can't be NCCL's; empty: they can.
std::string host_sums(const Config& config) {
  if (config.train.virtual_ranks) return "train.virtual_ranks adds up in one order for any number of ranks";
  if (config.distributed.compress != "none") return "distributed.compress sends gradients in another format";
  return "";
}

}  // namespace

Resources claim_resources(const Config& config, const MpiEnvironment& environment) {
  Resources made;
  // Sums inside a layer depend on how many threads share them, so virtual ranks have one unless told otherwise.
  const int most = config.train.virtual_ranks ? 1 : environment.threads();
  made.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : most;
  std::string kind = config.device.kind;
  if (kind != "cpu") {
    MpiCommunicator ranks(environment.world(), {.timeout_seconds = config.distributed.timeout});
    if (kind == "auto") kind = choose_kind(ranks, environment, made.why_device);
    if (kind == "cuda")
      run_agreed(ranks, [&] { made.gpu = take_gpu(ranks, environment, config.device.oversubscribe); });
  }
  run_agreed(environment.world(), [&] {
    made.backend =
        make_backend(kind,
                     {.threads = made.threads,
                      .flush_denormals = config.device.flush_denormals,
                      .winograd = config.device.convolution != "direct"},
                     {.index = made.gpu,
                      .deterministic = config.device.deterministic,
                      .measure_convolutions = config.device.convolution_search == "measure",
                      .convolution_workspace = static_cast<size_t>(config.device.convolution_workspace_mb) << 20,
                      .tf32 = config.device.tf32});
  });
  const std::string& wanted = config.distributed.backend;
  const double timeout = config.distributed.timeout;
  if (cuda::Context* gpu = made.backend->gpu(); gpu != nullptr)
    made.communicator = make_gpu_communicator(wanted, environment, *gpu, timeout, made.why, host_sums(config));
  else
    made.communicator = make_communicator(wanted, environment, timeout, &made.why);
  made.communicator->activity().prepare(config.distributed.prepare_timeout);
  return made;
}

}  // namespace lockstep
