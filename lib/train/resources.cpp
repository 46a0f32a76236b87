#include "train/resources.h"

#include "backend/factory.h"
#include "comm/factory.h"
#include "comm/gpu_placement.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/run_agreed.h"
#include "core/cpu_features.h"

namespace lockstep {

std::string Resources::describe(const Arithmetic& arithmetic) const {
  return fmt::format("{} thread(s) each, {} ({}), {}, communicator {}{}", threads, backend->name(), name(detect_isa()),
                     arithmetic.text, communicator->name(), why.empty() ? "" : ": " + why);
}

Resources claim_resources(const Config& config, const MpiEnvironment& environment) {
  Resources made;
  // Sums inside a layer depend on how many threads share them, so virtual ranks have one unless told otherwise.
  const int most = config.train.virtual_ranks ? 1 : environment.threads();
  made.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : most;
  if (config.device.kind == "cuda") {
    MpiCommunicator ranks(environment.world(), {.timeout_seconds = config.distributed.timeout});
    run_agreed(ranks, [&] { made.gpu = take_gpu(ranks, environment, config.device.oversubscribe); });
  }
  run_agreed(environment.world(), [&] {
    made.backend = make_backend(config.device.kind,
                                {.threads = made.threads,
                                 .flush_denormals = config.device.flush_denormals,
                                 .winograd = config.device.convolution != "direct"},
                                made.gpu);
  });
  made.communicator = make_communicator(config.distributed.backend, environment, config.distributed.timeout, &made.why);
  made.communicator->activity().prepare(config.distributed.prepare_timeout);
  return made;
}

}  // namespace lockstep
