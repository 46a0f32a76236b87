#include "sweep/job_array.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/text_file.h"
#include "sweep/slurm.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostTasks =
    1000;  // Slurm's MaxArraySize, the largest index and one, is 1001 unless its administrators say otherwise
constexpr int64_t kMostArrays = 10000;  // folders

std::string new_folder(const std::string& dir) {
  for (int64_t number = 1; number <= kMostArrays; ++number) {
    std::string folder = fmt::format("{}/array-{}", dir, number);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) throw_error("{}: {}", folder, std::strerror(errno));
  }
  throw_error("{}: holds {} arrays: expected fewer, remove old ones (array-*)", dir, kMostArrays);
}

std::string zero_ended(const CommandWords& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  return text;
}

void note_task(const Trial& trial, const std::string& folder, size_t task) {
  std::ofstream file(submit_output(trial), std::ios::app);
  file << fmt::format("{} {}\n", fs::path(folder).filename().string(), task);
  if (!file.flush()) throw_error("{}: cannot be written", submit_output(trial));
}

}  // namespace

std::vector<std::vector<size_t>> array_groups(const std::vector<Trial>& trials, const std::vector<size_t>& which) {
  std::vector<std::vector<size_t>> groups;
  for (const size_t index : which) {
    const auto fits = [&](const std::vector<size_t>& group) {
      const Trial& first = trials[group.front()];
      return group.size() < kMostTasks && first.world_size == trials[index].world_size &&
             first.threads == trials[index].threads;
    };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    if (found == groups.end())
      groups.push_back({index});
    else
      found->push_back(index);
  }
  return groups;
}

std::string make_array_folder(const std::string& dir, const std::vector<Trial>& trials,
                              const std::vector<size_t>& tasks, const std::vector<CommandWords>& commands) {
  std::string folder = new_folder(dir);
  for (size_t task = 0; task < tasks.size(); ++task) {
    const Trial& trial = trials[tasks[task]];
    write_text_file(trial.dir + "/command", zero_ended(commands[task]));
    const std::string link = fmt::format("{}/{}", folder, task), target = "../" + trial.name;
    if (::symlink(target.c_str(), link.c_str()) != 0) throw_error("{}: {}", link, std::strerror(errno));
    note_task(trial, folder, task);
  }
  return folder;
}

CommandWords array_command(const Trial& like, size_t tasks, std::optional<int64_t> at_once,
                           const SubmitOptions& options, const std::string& script, const std::string& folder) {
  const std::string name = fs::path(like.dir).parent_path().filename().string();
  CommandWords words = sbatch_words(like, options, name, without_patterns(folder) + "/%a/launch.log");
  words.insert(words.begin() + 1,
               fmt::format("--array=0-{}{}", tasks - 1, at_once ? fmt::format("%{}", *at_once) : ""));
  words.insert(words.end(), {script, folder});
  return words;
}

std::string array_script() {
  return "#!/usr/bin/env bash\n"
         "# A task of a sweep's job array: $1 is the array's folder, in which the task's index is a link to its "
         "trial's\n"
         "# folder; `command` there holds the words to run. Written by `lockstep sweep --submit --array`.\n"
         "set -euo pipefail\n"
         "export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}\n"
         "mapfile -d '' -t words < \"$1/$SLURM_ARRAY_TASK_ID/command\"\n"
         "exec srun --mpi=pmix --kill-on-bad-exit=1 \"${words[@]}\"\n";
}

}  // namespace lockstep
