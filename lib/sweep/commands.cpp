#include "sweep/commands.h"

#include <cctype>
#include <cmath>

#include "core/error.h"

namespace lockstep {
namespace {

void append(CommandWords& words, const CommandWords& more) { words.insert(words.end(), more.begin(), more.end()); }

bool needs_no_quotes(const std::string& word) {
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("_-./=,:+@%").find(c) == std::string_view::npos)
      return false;
  return !word.empty();
}

}  // namespace

CommandWords train_command(const Trial& trial, const std::string& program, bool go_on) {
  CommandWords words{program, "train", trial.config};
  for (const std::string& override : trial.overrides) words.insert(words.end(), {"--set", override});
  if (go_on) words.insert(words.end(), {"--resume", "auto"});
  return words;
}

// The ranks divide the CPUs of the trial among themselves: no binding. More ranks than cores are the sweep's wish.
CommandWords local_command(const Trial& trial, const std::string& program, bool go_on) {
  CommandWords words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", std::to_string(trial.world_size)};
  append(words, train_command(trial, program, go_on));
  return words;
}

std::string without_patterns(std::string path) {
  for (size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) path.insert(at, 1, '%');
  return path;
}

CommandWords sbatch_words(const Trial& like, const SubmitOptions& options, const std::string& job_name,
                          const std::string& output) {
  CommandWords words{"sbatch"};
  if (options.wait) words.emplace_back("--wait");
  append(words, {"--parsable", "--job-name=" + job_name, fmt::format("--ntasks={}", like.world_size),
                 fmt::format("--cpus-per-task={}", like.threads), "--output=" + output, "--open-mode=append"});
  if (options.time_limit) words.push_back(fmt::format("--time={:.0f}", std::ceil(*options.time_limit / 60)));
  append(words, options.more);
  return words;
}

CommandWords batch_command(const Trial& trial, const SubmitOptions& options, const std::string& script,
                           const std::string& program, bool go_on) {
  CommandWords words = sbatch_words(trial, options, trial.name, without_patterns(trial.dir) + "/launch.log");
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
