// Is there room for a run's checkpoints? Asked before the first step, not found out in the night.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/checkpoint/snapshot.h"

namespace lockstep {

// Bytes on the disk of one checkpoint: all files, each rounded up to blocks. Nothing is copied.
uint64_t checkpoint_bytes(const Snapshot& snapshot);
// What to tell people where the file system of `dir` (which need not exist yet) has less room than `count` checkpoints
// of so many bytes take; nullopt: enough, or the file system does not say.
std::optional<std::string> space_shortage(const std::string& dir, uint64_t bytes, int64_t count);

}  // namespace lockstep
