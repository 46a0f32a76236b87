// Starts a training command again when it has failed, from its last checkpoint: `lockstep run`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/launch.h"
#include "core/restart_command.h"

namespace lockstep {

struct SupervisorSettings {
  CommandLine command;
  int64_t max_restarts = 0;
  double delay = 1;  // seconds before a restart, doubled for each that follows a launch that ended soon again
  std::optional<int64_t> min_ranks =
      {};                 // a restart that fails soon is followed by one on fewer ranks, down to this many
  double soon = 60;       // seconds
  int refused_code = 2;   // exit code of a launch that will fail again: wrong input
  int stopped_code = 75;  // of one that was asked to end
  int pass_as = 0;        // see Launcher
};

// Throws Error for a command that can't be started again: --resume PATH (each restart would begin there anew), or
// min_ranks where the command names no number of ranks or a smaller one.
void check(const SupervisorSettings& settings);

// Runs the command until it succeeds, is refused, is asked to end (by its own exit code, or by a signal to this
// process, which is passed on), or has failed max_restarts + 1 times. On a number of ranks that was lowered, a refusal
// (virtual ranks and a fixed global batch don't allow every number) means the next lower number, and no restart is
// spent. Returns the last launch's exit code; tell() gets a line for every start and end.
int supervise(const SupervisorSettings& settings, const std::function<void(const std::string&)>& tell);

}  // namespace lockstep
