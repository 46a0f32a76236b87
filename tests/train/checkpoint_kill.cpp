// A writer killed at any moment leaves whole checkpoints only.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "checkpoint_support.h"
#include "support/child.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Some hundred writes of its own, so that a kill mostly falls between two of them.
Snapshot large_snapshot(int64_t step) {
  Snapshot made = snapshot(step);
  for (int i = 0; i < 40; ++i)
    made.tensors["model"].push_back(
        floats(fmt::format("layer{}.weight", i), {2000}, std::vector<float>(2000, static_cast<float>(step + i))));
  return made;
}

void check_whole(const CheckpointFolder& folder, int64_t step) {
  const Checkpoint read = read_checkpoint(fmt::format("{}/step-{:09}", folder.dir(), step));
  CHECK_EQ(read.state.integer("sampler.position"), step * 16);
  CHECK_EQ(read.file("model").floats("layer39.weight").back(), static_cast<float>(step + 39));
}

}  // namespace

TEST_CASE("writers killed at random moments leave whole checkpoints") {
  const TempDir dir;
  const CheckpointFolder folder(dir.path(), {.last = 2, .every = 0, .best = true});
  std::mt19937 engine(20261130);
  const int rounds = std::getenv("LOCKSTEP_LONG_TESTS") != nullptr ? 50 : 8;
  int64_t reached = 0;
  int half_done = 0;
  for (int round = 0; round < rounds; ++round) {
    folder.prepare();
    const pid_t child = start_child([&] {
      // The first one is written anew, in the place of the one that is there.
      for (int64_t step = std::max<int64_t>(reached, 1);; ++step) folder.write(large_snapshot(step), step % 3 == 0);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(500, 60000)(engine)));
    REQUIRE_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFSIGNALED(status));  // it was writing until then
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
      half_done += entry.path().string().ends_with(".tmp");
    const std::vector<int64_t> steps = folder.steps();
    for (const int64_t step : steps) check_whole(folder, step);
    const auto newest = folder.newest();
    CHECK_EQ(newest.has_value(), !steps.empty());
    if (!newest) continue;
    CHECK_GE(newest->step, reached);  // what was once there stays
    reached = newest->step;
    for (const char* pointer : {"last", "best"}) {
      const std::string path = dir.path() + "/" + pointer;
      if (std::filesystem::exists(path)) CHECK_LE(read_checkpoint(path).step, reached);
    }
  }
  MESSAGE(rounds << " kills, " << half_done << " left something half done, step " << reached << " reached");
  CHECK_GT(reached, 0);
  folder.prepare();
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    CHECK(entry.path().filename().string().find('.') == std::string::npos);
}
