// How trials stand while a sweep is under way, with a squeue that says what the test wants.
#include "sweep/progress.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sweep/slurm.h"
#include "sweep/trial_folder.h"

using namespace lockstep;
namespace fs = std::filesystem;
using State = TrialOutcome::State;

namespace {

constexpr const char* kConfig = "train: {batch_size: 8}";

// A sweep's folder, and one with a squeue of its own in front of PATH. Its trials have been submitted as job 7.
class Cluster {
 public:
  explicit Cluster(const std::string& squeue)
      : root_(fs::temp_directory_path() / ("lockstep-progress-" + std::to_string(getpid()))), path_(getenv("PATH")) {
    fs::create_directories(root_ / "sweep/array-1");
    fs::create_directories(root_ / "bin");
    std::ofstream(submit_output(root_ / "sweep/array-1")) << "7\n";
    for (const char* name : {"squeue", "sacct"})
      std::ofstream(root_ / "bin" / name) << "#!/bin/sh\n" << (name[1] == 'q' ? squeue : "exit 1") << "\n";
    for (const char* name : {"squeue", "sacct"}) fs::permissions(root_ / "bin" / name, fs::perms::owner_all);
    setenv("PATH", ((root_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  ~Cluster() {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(root_);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // log: lines after the start; "": the run has not begun.
  Trial task(int index, const std::string& log) const {
    Trial trial;
    trial.name = "task" + std::to_string(index);
    trial.dir = root_ / "sweep" / trial.name;
    trial.resolved = kConfig;
    fs::create_directory(trial.dir);
    std::ofstream(submit_output(trial)) << "array-1 " << index << "\n";
    if (!log.empty())
      std::ofstream(trial.dir + "/metrics.jsonl")
          << R"({"event":"start","world_size":1,"config":")" << kConfig << "\"}\n"
          << log;
    return trial;
  }
  std::string folder() const { return root_ / "sweep"; }

 private:
  fs::path root_;
  std::string path_;
};

constexpr const char* kStep = R"({"event":"step","step":0,"loss":2.5})"
                              "\n";
constexpr const char* kEnd = R"({"event":"end","steps":1,"seconds":2})"
                             "\n";
constexpr const char* kStopped = R"({"event":"stopped","reason":"signal 15"})"
                                 "\n";

}  // namespace

TEST_CASE("submitted trials are queued or running or as they ended") {
  const Cluster cluster(
      "printf '7_0 PENDING\\n7_1 RUNNING\\n7_2 COMPLETED\\n7_3 FAILED\\n7_4 FAILED\\n7_5 COMPLETING\\n'");
  const std::vector<Trial> trials{cluster.task(0, ""),    cluster.task(1, kStep),    cluster.task(2, kEnd),
                                  cluster.task(3, kStep), cluster.task(4, kStopped), cluster.task(5, kEnd),
                                  cluster.task(6, kStep)};
  std::ofstream(trials[3].dir + "/launch.log") << "a line\nlockstep: the disk is full\nsrun: error: exit 1\n";
  const auto outcomes = outcomes_now(trials, [](const std::string& told) { FAIL(told); });
  const auto expected = {State::queued,  State::running, State::done,  State::failed,
                         State::stopped, State::done,    State::failed};
  size_t i = 0;
  for (const State state : expected) {
    CAPTURE(i);
    CHECK(static_cast<int>(outcomes[i++].state) == static_cast<int>(state));
  }
  CHECK(outcomes[0].problem == "Slurm job 7_0 is PENDING");
  REQUIRE(outcomes[1].run.has_value());
  CHECK(outcomes[1].run->steps.size() == 1);
  CHECK(outcomes[3].problem == "Slurm job 7_3 is FAILED: lockstep: the disk is full");
  CHECK(outcomes[6].problem == "Slurm job 7_6 has ended: no output");  // Slurm has forgotten it
}

TEST_CASE("where Slurm does not answer trials are as their folders say and the reader is told") {
  const Cluster cluster("echo 'slurm_load_jobs error: Unable to contact slurm controller'; exit 1");
  const std::vector<Trial> trials{cluster.task(0, ""), cluster.task(1, kStep), cluster.task(2, kEnd),
                                  cluster.task(3, kStopped)};
  std::string told;
  const auto outcomes = outcomes_now(trials, [&](const std::string& line) { told += line; });
  CHECK(outcomes[0].state == State::queued);
  CHECK(outcomes[1].state == State::running);
  CHECK(outcomes[2].state == State::done);
  CHECK(outcomes[3].state == State::stopped);
  CHECK(told.find("Unable to contact slurm controller") != std::string::npos);
  // Who is about to submit must not take silence for an end.
  CHECK_THROWS(states_of_jobs({"7_0"}));
}

TEST_CASE("jobs that Slurm has forgotten are told apart from silence") {
  const Cluster cluster(
      "for word; do case $word in --jobs=7,8) echo 'slurm_load_jobs error: Invalid job id specified'; exit 1;;\n"
      "--jobs=8) echo '8 RUNNING';; --jobs=7) echo 'slurm_load_jobs error: Invalid job id specified'; exit 1;; esac; "
      "done");
  CHECK(states_of_jobs({"7", "8"}) == std::map<std::string, std::string>{{"8", "RUNNING"}});
}

TEST_CASE("trials of a sweep on this machine are queued while it is at work and failed when it is not") {
  const Cluster cluster("exit 1");
  Trial fresh;
  fresh.name = "fresh";
  fresh.dir = cluster.folder() + "/fresh";
  const Trial begun = cluster.task(1, kStep);
  fs::remove(submit_output(begun));
  std::ofstream(begun.dir + "/launch.log") << "lockstep: killed\n";
  const auto quiet = [](const std::string& told) { FAIL(told); };
  {
    const FolderLock lock(cluster.folder());
    const auto outcomes = outcomes_now({fresh, begun}, quiet);
    CHECK(outcomes[0].state == State::queued);
    CHECK(outcomes[1].state == State::failed);
    CHECK(outcomes[1].problem == "ended early: lockstep: killed");
  }
  CHECK(outcomes_now({fresh}, quiet)[0].state == State::missing);
}
