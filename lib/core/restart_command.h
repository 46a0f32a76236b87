// The command line of a launch that is started again: from the last checkpoint, perhaps on fewer ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

using CommandLine = std::vector<std::string>;

// With "--resume auto" at the end unless there is a --resume already, and without --overwrite: what the run saved is
// wanted now.
CommandLine resuming(CommandLine command);
// The PATH of "--resume PATH", "--resume=PATH"; nullopt: none.
std::optional<std::string> resumed_path(const CommandLine& command);

// The number behind mpirun's -np, -n, --np or srun's --ntasks (also --ntasks=4); nullopt: there is none.
std::optional<int64_t> rank_count(const CommandLine& command);
// The same command with another number; it must have one.
CommandLine with_ranks(CommandLine command, int64_t ranks);

}  // namespace lockstep
