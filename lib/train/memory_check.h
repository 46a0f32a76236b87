// Whether a run fits into the memory of its node, asked before anything large is allocated: the kernel would end a rank
// that takes too much without a word, in the middle of training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "comm/launcher.h"
#include "train/memory_estimate.h"

namespace lockstep {

struct NodeMemory {
  uint64_t free = 0;                // that processes may still take here
  std::string why;                  // "free on the machine", "free below the control group's limit"
  std::optional<uint64_t> granted;  // by Slurm to the job on this node, whether it is enforced or not
};
// root: where /proc and /sys are, for tests.
NodeMemory node_memory(const Environment& environment, const std::filesystem::path& root = "/");

// What is wrong, with its cure; empty: the run fits. ranks: on this node; first: rank 0 is among them. The data sets
// are in memory already.
std::string memory_shortage(const MemoryEstimate& estimate, int ranks, bool first, const NodeMemory& node);

}  // namespace lockstep
