// Trials as the tasks of Slurm job arrays. A task finds its trial by its index: in the array's folder, array-K below
// the sweep's, the index is a link to the trial's folder, where `command` holds the words to run, each ended by a zero
// byte. So no value of a config becomes a shell's text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/commands.h"
#include "sweep/trials.h"

namespace lockstep {

// Those of `which` that ask for the same ranks and threads, in their order, for one array each; no array is larger than
// Slurm's default MaxArraySize lets it be.
std::vector<std::vector<size_t>> array_groups(const std::vector<Trial>& trials, const std::vector<size_t>& which);

// Makes the next array-K below `dir` and puts in what its tasks need; notes in every trial's folder, which exist, which
// task it is. commands: by task. Returns the folder. Error: it cannot be made.
std::string make_array_folder(const std::string& dir, const std::vector<Trial>& trials,
                              const std::vector<size_t>& tasks, const std::vector<CommandWords>& commands);

// sbatch --array ... SCRIPT FOLDER; a task's output goes to its trial's folder. like: a trial of the array. at_once:
// tasks side by side at most. script: array_script()'s text.
CommandWords array_command(const Trial& like, size_t tasks, std::optional<int64_t> at_once,
                           const SubmitOptions& options, const std::string& script, const std::string& folder);
// The batch file of all arrays.
std::string array_script();

}  // namespace lockstep
