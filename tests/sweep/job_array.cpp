// Job arrays: which trials share one, what its tasks find by their index, and what Slurm's answers say of them.
#include "sweep/job_array.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/run_program.h"
#include "sweep/file_lock.h"
#include "sweep/process_pool.h"
#include "sweep/slurm.h"
#include "sweep/trial_folder.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

class SweepDir {
 public:
  SweepDir() : path_(fs::temp_directory_path() / ("lockstep 50% array-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~SweepDir() { fs::remove_all(path_); }
  Trial trial(const std::string& name, int64_t world_size, int64_t threads = 1) const {
    Trial made;
    made.name = name;
    made.dir = path_ / name;
    made.world_size = world_size;
    made.threads = threads;
    fs::create_directory(made.dir);
    return made;
  }
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("trials of equal resources share an array and large ones are parted") {
  const SweepDir dir;
  const std::vector<Trial> trials{dir.trial("a", 1), dir.trial("b", 2), dir.trial("c", 1), dir.trial("d", 1, 4),
                                  dir.trial("e", 2)};
  CHECK(array_groups(trials, {0, 1, 2, 3, 4}) == std::vector<std::vector<size_t>>{{0, 2}, {1, 4}, {3}});
  CHECK(array_groups(trials, {4, 1}) == std::vector<std::vector<size_t>>{{4, 1}});
  const std::vector<size_t> many(1001, 0);
  const auto parts = array_groups(trials, many);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].size() == 1000);  // the largest index, 999, is below Slurm's default MaxArraySize of 1001
}

// With a stand-in for srun that prints its words: nothing of them passes through a shell's hands.
TEST_CASE("a task of an array runs the words of its own trial as they are") {
  const SweepDir dir;
  const std::vector<Trial> trials{dir.trial("one", 1), dir.trial("two", 1)};
  const std::string awkward = "run.dir=\"$HOME `id` 'x'\n*; exit 1\"";
  const std::string folder =
      make_array_folder(dir.path(), trials, {1, 0}, {{"lockstep", "train", awkward}, {"lockstep", "first"}});
  CHECK(folder == dir.path() + "/array-1");
  CHECK(make_array_folder(dir.path(), trials, {0}, {{"lockstep"}}) == dir.path() + "/array-2");
  CHECK(fs::canonical(folder + "/0") == fs::canonical(trials[1].dir));
  std::ofstream(dir.path() + "/array.sbatch") << array_script();
  std::ofstream(dir.path() + "/srun") << "#!/bin/sh\nprintf '<%s>' \"$@\"\n";
  fs::permissions(dir.path() + "/srun", fs::perms::owner_all);
  const ProgramAnswer answer = run_program({"env", "PATH=" + dir.path() + ":" + std::getenv("PATH"),
                                            "SLURM_ARRAY_TASK_ID=0", "bash", dir.path() + "/array.sbatch", folder},
                                           20);
  CHECK(answer.exit_code == 0);
  CHECK(answer.output == "<--mpi=pmix><--kill-on-bad-exit=1><lockstep><train><" + awkward + ">");
  const ProgramAnswer none = run_program({"env", "PATH=" + dir.path() + ":" + std::getenv("PATH"),
                                          "SLURM_ARRAY_TASK_ID=2", "bash", dir.path() + "/array.sbatch", folder},
                                         20);
  CHECK(none.exit_code != 0);
}

TEST_CASE("the command of an array has its limit and its trials' output") {
  const SweepDir dir;
  const CommandWords words =
      array_command(dir.trial("a", 2, 3), 5, 2, {.wait = false, .more = {"--qos=x"}}, "array.sbatch", "/r/50%/array-1");
  CHECK(typed(words).starts_with("sbatch --array=0-4%2 --parsable "));
  const auto has = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  CHECK(has("--ntasks=2"));
  CHECK(has("--cpus-per-task=3"));
  CHECK(has("--output=/r/50%%/array-1/%a/launch.log"));
  CHECK(has("--qos=x"));
  CHECK(words.back() == "/r/50%/array-1");
  CHECK(typed(array_command(dir.trial("b", 1), 1, {}, {}, "s", "f")).starts_with("sbatch --array=0-0 --wait "));
}

TEST_CASE("the job of a trial is the one that was submitted last") {
  const SweepDir dir;
  const std::vector<Trial> trials{dir.trial("one", 1), dir.trial("two", 1)};
  CHECK(submitted_job(trials[0]).empty());
  std::ofstream(submit_output(trials[0])) << "sbatch: error: too many\n17\n";
  CHECK(submitted_job(trials[0]) == "17");
  const std::string folder = make_array_folder(dir.path(), trials, {1, 0}, {{"a"}, {"b"}});
  CHECK(submitted_job(trials[0]).empty());  // sbatch has not answered yet
  std::ofstream(submit_output(folder)) << "40;cluster\n";
  CHECK(submitted_job(trials[0]) == "40_1");
  CHECK(submitted_job(trials[1]) == "40_0");
  std::ofstream(submit_output(trials[0]), std::ios::app) << "41\n";
  CHECK(submitted_job(trials[0]) == "41");
  std::ofstream(submit_output(folder)) << "sbatch: error: Batch job submission failed: Invalid partition\n";
  CHECK(reason_in_output(trials[1]) == "sbatch: error: Batch job submission failed: Invalid partition");
}

TEST_CASE("answers of squeue and sacct are states by job") {
  const auto queue = parse_job_states("12_0 RUNNING\n12_1 PENDING\nslurm_load_jobs error\n13 COMPLETED", ' ');
  CHECK(queue == std::map<std::string, std::string>{{"12_0", "RUNNING"}, {"12_1", "PENDING"}, {"13", "COMPLETED"}});
  const auto accounts = parse_job_states("14|CANCELLED by 0\n14.batch|FAILED\n15|TIMEOUT\n", '|');
  CHECK(accounts == std::map<std::string, std::string>{{"14", "CANCELLED"}, {"15", "TIMEOUT"}});
  CHECK(phase_of("PENDING") == JobPhase::queued);
  CHECK(phase_of("COMPLETING") == JobPhase::running);
  for (const char* state : {"", "FAILED", "COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"})
    CHECK(phase_of(state) == JobPhase::ended);
}

TEST_CASE("a lock is seen by others and lasts as long as the command that inherited it") {
  const SweepDir dir;
  const Trial trial = dir.trial("one", 1);
  CHECK_FALSE(is_run_here(trial));
  {
    ProcessPool pool;
    pool.start({.command = {"sleep", "0.5"}, .output = trial.dir + "/launch.log", .cpus = {}, .limit = {}});
    CHECK(is_run_here(trial));
    CHECK(pool.wait()->code == 0);
  }
  CHECK_FALSE(is_run_here(trial));
  CHECK(text_of(trial.dir + "/launch.log").empty());
  const FolderLock held(dir.path());
  CHECK(is_at_work_in(dir.path()));
  CHECK_THROWS(FolderLock(dir.path()));
}
