// What `lockstep doctor` knows of a machine, a launch and a run: plain values, so that what follows from them
// (findings.h) and how they are printed (report.h) are pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu.h"
#include "comm/launcher.h"
#include "comm/mpi_facts.h"

namespace lockstep {

// One process. Sizes in bytes; an empty optional is "no limit", or "not known" where there is always one.
struct MachineFacts {
  int rank = 0, node = 0, local_rank = 0, local_size = 1;
  std::string host, cpu, isa;                  // "Intel(R) Xeon(R) ...", "avx512"
  int own_cores = 1;                           // that this process may run on
  int node_cores = 1;                          // that the ranks of its node may run on together
  int threads = 1;                             // that it would compute with
  std::optional<uint64_t> shared_memory_free;  // of /dev/shm; empty: there is none
  std::optional<uint64_t> memory_limit;        // of the control group
  std::optional<uint64_t> locked_memory, open_files, stack;
  GpuFacts gpu;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::vector<std::string> driver_gpus;        // UUIDs that the driver lists, visible to this process or not
  std::string driver;                          // "580.65.06"; empty: no driver
  std::string nccl = "none";                   // its settings (comm/nccl_settings.h)
};

// What Slurm tells its jobs; empty where it says nothing.
struct SlurmFacts {
  std::optional<int64_t> job, step, nodes, tasks, cpus_per_task, gpus_on_node, end_time;  // end_time: Unix seconds
  std::string tasks_per_node, cpu_bind, node_list;
};
SlurmFacts slurm_facts(const Environment& environment);

struct RunFacts {
  int size = 1, nodes = 1;
  std::string launcher;         // "Open MPI's mpirun"; empty: started directly
  std::string launch_problem;   // MPI could not start as the launcher meant it; then there is one rank below
  std::optional<MpiFacts> mpi;  // empty: MPI did not start
  std::vector<LibraryVersion> libraries;
  SlurmFacts slurm;
  int64_t now = 0;                  // Unix seconds
  std::vector<MachineFacts> ranks;  // by rank
  // What training would stand on (train/resources.h), or why it would not start.
  std::string wanted_device = "auto", wanted_communicator = "auto";
  std::string config;  // the file that was asked about; empty: defaults
  std::string choice, refusal;
  bool oversubscribe = false;  // device.oversubscribe
};

}  // namespace lockstep
