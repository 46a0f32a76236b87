#include "sweep/commands.h"

#include <cctype>

#include "core/error.h"

namespace lockstep {
namespace {

CommandWords train_command(const Trial& trial, const std::string& program, bool go_on) {
  CommandWords words{program, "train", trial.config};
  for (const std::string& override : trial.overrides) words.insert(words.end(), {"--set", override});
  if (go_on) words.insert(words.end(), {"--resume", "auto"});
  return words;
}

void append(CommandWords& words, const CommandWords& more) { words.insert(words.end(), more.begin(), more.end()); }

// sbatch replaces %A, %j, ... in the names of output files.
std::string without_patterns(std::string path) {
  for (size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) path.insert(at, 1, '%');
  return path;
}

bool needs_no_quotes(const std::string& word) {
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("_-./=,:+@%").find(c) == std::string_view::npos)
      return false;
  return !word.empty();
}

}  // namespace

// The ranks divide the CPUs of the trial among themselves: no binding. More ranks than cores are the sweep's wish.
CommandWords local_command(const Trial& trial, const std::string& program, bool go_on) {
  CommandWords words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", std::to_string(trial.world_size)};
  append(words, train_command(trial, program, go_on));
  return words;
}

CommandWords batch_command(const Trial& trial, const std::vector<std::string>& options, const std::string& script,
                           const std::string& program, bool go_on) {
  CommandWords words{"sbatch",
                     "--wait",
                     "--parsable",
                     "--job-name=" + trial.name,
                     fmt::format("--ntasks={}", trial.world_size),
                     fmt::format("--cpus-per-task={}", trial.threads),
                     "--output=" + without_patterns(trial.dir + "/launch.log"),
                     "--open-mode=append"};
  append(words, options);
  words.push_back(script);
  append(words, train_command(trial, program, go_on));
  return words;
}

std::string batch_script() {
  return "#!/usr/bin/env bash\n"
         "# One trial of a sweep: starts its arguments on the tasks of the job. Written by `lockstep sweep --submit`.\n"
         "set -euo pipefail\n"
         "export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}\n"
         "exec srun --mpi=pmix --kill-on-bad-exit=1 \"$@\"\n";
}

std::string typed(const CommandWords& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    if (needs_no_quotes(word)) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace lockstep
