// The command lines of a trial: words, never a shell's text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/trials.h"

namespace lockstep {

using CommandWords = std::vector<std::string>;

// mpirun -np W PROGRAM train ... on this machine. go_on: with --resume auto, as the folder is not new.
CommandWords local_command(const Trial& trial, const std::string& program, bool go_on);
// PROGRAM train ..., for a launcher to start on every rank.
CommandWords train_command(const Trial& trial, const std::string& program, bool go_on);

struct SubmitOptions {
  bool wait = true;                    // for the job to end
  std::optional<double> time_limit;    // seconds; Slurm counts whole minutes
  std::vector<std::string> more = {};  // of sbatch
};
// sbatch with the resources of a trial, without the batch file.
CommandWords sbatch_words(const Trial& like, const SubmitOptions& options, const std::string& job_name,
                          const std::string& output);
// sbatch ... SCRIPT PROGRAM train ...; the job's output goes to the trial's folder. script: batch_script()'s text.
CommandWords batch_command(const Trial& trial, const SubmitOptions& options, const std::string& script,
                           const std::string& program, bool go_on);
// sbatch replaces %A, %j, ... in the names of output files: this one stands for itself.
std::string without_patterns(std::string path);
// The batch file of all trials: starts its arguments on the job's tasks.
std::string batch_script();

// A command as one could type it, for people.
std::string typed(const CommandWords& command);

}  // namespace lockstep
