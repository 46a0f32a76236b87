// One training under the supervisor, of which ranks are killed at random times, while it starts, trains and saves: it
// ends with the weights and the log of a run that nobody disturbed. LOCKSTEP_LONG_TESTS: 200 kills; the log of such a
// run is in docs/kills.md.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* kModel = R"(
model:
  layers: [{conv2d: {out: 16, kernel: 3}}, batch_norm, relu, {max_pool2d: 4}, flatten, {dropout: 0.3}, {linear: 3}]
data:
  train: {kind: synthetic, name: random, samples: 203, shape: [1, 40, 40], classes: 3, seed: 5}
  val: {kind: synthetic, name: random, samples: 53, shape: [1, 40, 40], classes: 3, seed: 6}
train: {epochs: 1000000, batch_size: 8, accumulate: 3}
optimizer: {kind: adamw, lr: 0.001}
schedule: {kind: cosine, warmup: 50}
eval: {every: 7 steps}
log: {every: 10}
checkpoint: {every: 10}
)";

// The processes of ranks that train in `run`: not their launcher, not the supervisor.
std::vector<pid_t> ranks_of(const fs::path& run) {
  std::vector<pid_t> ranks;
  const std::string option = "run.dir=" + run.string();
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = bytes_of(entry.path() / "cmdline");  // each ends with a zero
    if (!words.starts_with(std::string(LOCKSTEP_BINARY) + '\0' + "train" + '\0')) continue;
    if (words.find(option) != std::string::npos) ranks.push_back(std::stoi(name));
  }
  return ranks;
}

bool is_saving(const fs::path& run) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", gone)) {
    if (entry.path().string().ends_with(".tmp")) return true;
  }
  return false;
}

struct Kills {
  int made = 0, while_saving = 0;
};

// Kills one rank of each launch, up to 2 s after all of them are there (the first of which they start), until `wanted`
// were killed or `done`.
Kills kill_at_random(const fs::path& run, size_t ranks, int wanted, const std::atomic<bool>& done) {
  std::mt19937 random(2026);
  Kills kills;
  std::vector<pid_t> before;
  while (kills.made < wanted && !done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::vector<pid_t> there = ranks_of(run);
    if (there.size() != ranks || there == before) continue;
    before = there;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 2000));
    if (::kill(there[random() % ranks], SIGKILL) != 0) continue;
    ++kills.made;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (is_saving(run)) ++kills.while_saving;
  }
  return kills;
}

}  // namespace

TEST_CASE("kills: a training whose ranks are killed again and again ends with the bits of an undisturbed one") {
  const bool long_form = std::getenv("LOCKSTEP_LONG_TESTS") != nullptr;
  const int wanted = long_form ? 200 : 8;
  const std::string steps = fmt::format("train.max_steps={}", long_form ? 32000 : 1200);
  const RunFolder folder(kModel, fs::temp_directory_path());  // on a disk, where saving takes its time
  const Outcome whole = folder.train("whole", 2, {"--set", steps}, {}, 600);
  REQUIRE_MESSAGE(whole.exit_code == 0, whole.output);

  std::vector<std::string> command{LOCKSTEP_BINARY, "run", "--max-restarts", "400", "--delay", "0", "--"};
  for (const std::string& word : mpirun(2, folder.command("killed", {"--set", steps}))) command.push_back(word);
  std::atomic<bool> done = false;
  Kills kills;
  std::thread killer([&] { kills = kill_at_random(folder / "killed", 2, wanted, done); });
  const Outcome killed = run_process(command, long_form ? 1800 : 200);
  done = true;
  killer.join();
  MESSAGE(kills.made << " kills, " << kills.while_saving << " of them while a checkpoint was being written; "
                     << whole.seconds << " s undisturbed, " << killed.seconds << " s with them");
  CHECK_MESSAGE(killed.exit_code == 0,
                killed.output.substr(killed.output.size() > 4000 ? killed.output.size() - 4000 : 0));
  CHECK(kills.made >= wanted / 2);
  CHECK(told(folder / "killed").digest == told(folder / "whole").digest);
  CHECK(told(folder / "killed").events == told(folder / "whole").events);
  if (const char* log = std::getenv("LOCKSTEP_KILLS_LOG")) std::ofstream(log) << killed.output;
}
