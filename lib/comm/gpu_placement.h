// Which GPU every rank of the run takes: what each rank sees is gathered from all, then decided by a pure function, so
// all ranks know all of it and a launch that can't work is refused before NCCL or a context exists.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "comm/communicator.h"
#include "comm/mpi_env.h"

namespace lockstep {

struct RankGpus {
  int node = 0, local_rank = 0;
  std::string host;
  std::vector<Gpu> visible;  // to this rank, in its order
};

// By rank; collective. mine: gpu_facts().visible
std::vector<RankGpus> gather_gpus(Communicator& communicator, const MpiEnvironment& environment,
                                  std::span<const Gpu> mine);

struct GpuPlacement {
  std::vector<DeviceChoice> choices;  // by rank
  std::string shared;                 // "ranks 0 and 1 hold the same GPU, ...", empty: every rank has its own
};

GpuPlacement place_on_gpus(std::span<const RankGpus> ranks, bool oversubscribe);

// The whole of it for a run that wants GPUs; collective. The index of this rank's GPU. Throws Error, with the cure,
// where a rank has none, on that rank.
int take_gpu(Communicator& communicator, const MpiEnvironment& environment, bool oversubscribe);

}  // namespace lockstep
