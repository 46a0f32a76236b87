// What a run stands on: threads, a device, a communicator. Claimed the same way by every command that trains or that
// asks whether training would start.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "comm/mpi_env.h"
#include "train/config.h"

namespace lockstep {

struct Resources {
  int threads = 1;
  int gpu = -1;            // index among those that this rank sees; -1: none
  std::string why_device;  // this device, where the config left it to us; empty: the config names it
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
  std::string why;  // this communicator

  // "2 thread(s) each, cpu (avx512), fp32, communicator shm: 2 ranks on one node"
  std::string describe(const Arithmetic& arithmetic) const;
};

// Collective. Throws PoliteError on all ranks where one can't have what the config asks for.
Resources claim_resources(const Config& config, const MpiEnvironment& environment);

}  // namespace lockstep
