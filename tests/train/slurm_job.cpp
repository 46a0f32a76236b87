// What Slurm's commands answer, played by small programs on PATH.
#include "train/slurm_job.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

// A folder in front of PATH with programs that the test writes; the job's variables as the test wants them.
class FakeSlurm {
 public:
  FakeSlurm()
      : folder_(fs::temp_directory_path() / ("lockstep-slurm-" + std::to_string(getpid()))), path_(getenv("PATH")) {
    fs::create_directories(folder_);
    setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
    setenv("SLURM_JOB_ID", "17", 1);
    unsetenv("SLURM_JOB_END_TIME");
  }
  ~FakeSlurm() {
    setenv("PATH", path_.c_str(), 1);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_JOB_END_TIME");
    fs::remove_all(folder_);
  }
  void program(const std::string& name, const std::string& body) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\necho \"$@\" > " << (folder_ / "asked").string() << "\n"
                                  << body << "\n";
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  std::string asked() const {
    std::ifstream file(folder_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  fs::path folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("Slurm's times are read in all their forms") {
  CHECK_EQ(parse_slurm_time_left("0:07"), 7);
  CHECK_EQ(parse_slurm_time_left("59:59"), 3599);
  CHECK_EQ(parse_slurm_time_left("1:00:01"), 3601);
  CHECK_EQ(parse_slurm_time_left("2-03:04:05"), 2 * 86400 + 3 * 3600 + 4 * 60 + 5);
  CHECK_FALSE(parse_slurm_time_left("UNLIMITED").has_value());
  CHECK_FALSE(parse_slurm_time_left("NOT_SET").has_value());
  for (const char* text :
       {"", "INVALID", "7", "1:2:3:4", "-1:00", "1:-1", "1:00 ", "a-1:00:00", "1-", ":", "9999999999:00"})
    CHECK_THROWS_AS(parse_slurm_time_left(text), Error);
}

TEST_CASE("outside a job there is no limit and nothing to requeue") {
  unsetenv("SLURM_JOB_ID");
  CHECK_FALSE(slurm_seconds_left().has_value());
  CHECK_THROWS_WITH_AS(requeue_job(), "run.requeue: this is no Slurm job (SLURM_JOB_ID is not set)", Error);
}

TEST_CASE("the job's end comes from its environment where it is there and else from squeue") {
  const FakeSlurm slurm;
  slurm.program("squeue", "echo '  1:02:03'");
  CHECK_EQ(slurm_seconds_left(), 3723);
  CHECK_EQ(slurm.asked(), "--noheader --format=%L --jobs=17\n");
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  setenv("SLURM_JOB_END_TIME", std::to_string(now.count() + 100).c_str(), 1);
  CHECK_LE(slurm_seconds_left().value(), 100);
  CHECK_GT(slurm_seconds_left().value(), 90);
  setenv("SLURM_JOB_END_TIME", "soon", 1);
  CHECK_THROWS_AS(slurm_seconds_left(), Error);
}

TEST_CASE("a squeue that fails is an error with its words") {
  const FakeSlurm slurm;
  slurm.program("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  CHECK_THROWS_WITH_AS(slurm_seconds_left(),
                       "squeue --noheader ended with code 1: slurm_load_jobs error: Invalid job id specified", Error);
}

TEST_CASE("a job that was cancelled does not come back") {
  CHECK_FALSE(may_requeue("SIGTERM on rank 1"));
  for (const char* reason : {"SIGUSR1 on rank 0", "max_time", "Slurm's time limit"}) CHECK(may_requeue(reason));
}

TEST_CASE("a job is put back by scontrol and its refusal is an error") {
  const FakeSlurm slurm;
  slurm.program("scontrol", "exit 0");
  CHECK_NOTHROW(requeue_job());
  CHECK_EQ(slurm.asked(), "requeue 17\n");
  slurm.program("scontrol", "echo 'Requested operation is presently disabled for job 17'; exit 1");
  CHECK_THROWS_WITH_AS(
      requeue_job(), "scontrol requeue ended with code 1: Requested operation is presently disabled for job 17", Error);
}
