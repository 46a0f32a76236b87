// Whether the training set is kept on the GPUs (device.data), one answer for all ranks, from what each of them has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "train/config.h"

namespace lockstep {

// Of one rank.
struct KeepFacts {
  std::string device;  // UUID of its GPU, which other ranks may have, too
  uint64_t free = 0;   // bytes of it
  uint64_t bytes = 0;  // of the training set as stored; 0: it makes samples when it is asked for them
};

// By rank. Collective; of no rank where the run is on a CPU.
std::vector<KeepFacts> gather_keep_facts(const Dataset& train, Backend& backend, Communicator& communicator);

struct KeepDecision {
  bool keep = false;
  std::string text;  // for the log: which, and why; empty on a CPU
};

// device.data auto leaves three quarters of the free memory to activations that are still to come.
inline constexpr uint64_t kKeptShare = 4;

// Throws Error, the same on all ranks, where device.data: on can't be.
KeepDecision decide_keep(const DeviceConfig& config, std::span<const KeepFacts> ranks);

// The feed of a training set that is kept. Throws Error, with the cure, where its GPU has no room after all.
std::unique_ptr<Feed> make_keeping_feed(const Dataset& train, const ImageFormat& image, int64_t batch_size,
                                        Backend& backend);

}  // namespace lockstep
