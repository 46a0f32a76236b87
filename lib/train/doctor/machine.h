// Looks at the machine this process runs on.
#pragma once

#include <filesystem>

#include "comm/communicator.h"
#include "comm/mpi_env.h"
#include "train/doctor/facts.h"

namespace lockstep {

MachineFacts cpu_facts();      // host, CPU and cores alone, which take no questions to drivers and file systems
MachineFacts machine_facts();  // without what MPI knows
MachineFacts machine_facts(const MpiEnvironment& environment);
// Every rank's, by rank; collective.
std::vector<MachineFacts> gather_facts(const MachineFacts& mine, Communicator& communicator);

// UUIDs of all GPUs that the driver knows, whatever is visible to CUDA. root: where /proc is, for tests.
std::vector<std::string> driver_gpus(const std::filesystem::path& root = "/");
std::string driver_version(const std::filesystem::path& root = "/");  // empty: no driver

}  // namespace lockstep
