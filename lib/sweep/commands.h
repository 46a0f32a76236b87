// The command lines of a trial: words, never a shell's text.
#pragma once

#include <string>
#include <vector>

#include "sweep/trials.h"

namespace lockstep {

using CommandWords = std::vector<std::string>;

// mpirun -np W PROGRAM train ... on this machine. go_on: with --resume auto, as the folder is not new.
CommandWords local_command(const Trial& trial, const std::string& program, bool go_on);
// sbatch --wait ... SCRIPT PROGRAM train ...; the job's output goes to the trial's folder. script: batch_script()'s
// text.
CommandWords batch_command(const Trial& trial, const std::vector<std::string>& options, const std::string& script,
                           const std::string& program, bool go_on);
// The batch file of all trials: starts its arguments on the job's tasks.
std::string batch_script();

// A command as one could type it, for people.
std::string typed(const CommandWords& command);

}  // namespace lockstep
