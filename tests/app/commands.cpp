// The commands that need no ranks: plan, config, plot.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

const std::string kArticles = LOCKSTEP_SOURCE_DIR "/configs/articles/";

Outcome run_lockstep(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LOCKSTEP_BINARY);
  return run_process(arguments, 60);
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("plan shows the article's table for 16 samples on 1 2 4 and 8 ranks") {
  const Outcome plan = run_lockstep({"plan", kArticles + "000_all_reduce.yaml", "--world-size", "1,2,4,8"});
  CAPTURE(plan.output);
  CHECK(plan.exit_code == 0);
  CHECK(plan.says("world_size 4: global batch = batch_size 2 x world_size 4 x accumulate 1 = 8"));
  CHECK(plan.says("rank 1: 10 8 14 3"));  // positions 1, 5, 9, 13 of 12 10 9 6 11 8 ...
  CHECK(plan.says("rank 7: 5 1"));
}

TEST_CASE("plan warns where every loader is empty and train refuses") {
  const Outcome plan = run_lockstep({"plan", kArticles + "001_first_principles.yaml", "--world-size", "8"});
  CAPTURE(plan.output);
  CHECK(plan.exit_code == 0);
  CHECK(plan.says(
      "WARNING world_size 8: every loader is empty: 5 samples, 8 ranks, batch 2, drop_last: nothing to train"));
}

TEST_CASE("plan warns where a batch norm would see one value per channel") {
  const auto plan = [](const std::string& policy) {
    return run_lockstep({"plan", kArticles + "000_all_reduce.yaml", "--world-size", "1,4", "--set",
                         "model={layers: [{linear: 4}, {batch_norm: {}, name: bn7}, {linear: 2}]}", "--set",
                         "train.batch_size=3", "--set", "train.max_steps=null", "--set",
                         "distributed.batch_norm=" + policy});
  };
  const Outcome own = plan("rank0"), across = plan("sync");  // 16 samples: the last batches are of one
  CAPTURE(own.output);
  CHECK(own.exit_code == 0);
  CHECK(own.says("WARNING world_size 1: Expected more than 1 value per channel when training, but in step 5 rank 0"));
  CHECK(own.says("WARNING world_size 4: Expected more than 1 value per channel when training, but in step 1 rank 0"));
  CHECK(across.says("for the batch norm 'bn7'"));
  CHECK_FALSE(across.says("WARNING world_size 4"));
}

TEST_CASE("plan and training agree on the samples of DataLoader's shuffle") {
  const Outcome plan = run_lockstep({"plan", kArticles + "000_toy.yaml", "--world-size", "1"});
  CAPTURE(plan.output);
  for (const char* order : {"rank 0: 2 1 3 0", "rank 0: 3 4 1 2", "rank 0: 0 4 1 2"}) CHECK(plan.says(order));
  const TrainingRun run = train("configs/articles/000_toy.yaml", 1);
  CHECK(run.rank_indices(0) == std::vector<std::vector<int64_t>>{{2, 1}, {3, 0}, {3, 4}, {1, 2}, {0, 4}, {1, 2}});
}

TEST_CASE("config prints a file that is accepted and prints itself again") {
  const auto path = std::filesystem::temp_directory_path() / ("lockstep-config-" + std::to_string(getpid()) + ".yaml");
  for (const auto& entry : std::filesystem::directory_iterator(kArticles)) {
    CAPTURE(entry.path().string());
    const Outcome first = run_lockstep({"config", entry.path().string()});
    REQUIRE(first.exit_code == 0);
    std::ofstream(path) << first.output;
    const Outcome second = run_lockstep({"config", path.string()});
    CHECK(second.exit_code == 0);
    CHECK(second.output == first.output);
  }
  std::filesystem::remove(path);
}

TEST_CASE("plot draws one curve per run") {
  const auto directory = std::filesystem::temp_directory_path() / ("lockstep-plot-" + std::to_string(getpid()));
  std::vector<std::string> command{"plot"};
  for (const std::string seed : {"1", "2"}) {
    const std::string run = (directory / ("run" + seed)).string();
    const Outcome trained =
        run_lockstep({"train", kArticles + "000_toy.yaml", "--set", "run.dir=" + run, "--set", "run.seed=" + seed});
    REQUIRE(trained.exit_code == 0);
    CHECK(std::filesystem::exists(run + "/config.yaml"));
    command.insert(command.end(), {run, "--label", "seed " + seed + " <&>"});
  }
  const std::string svg = (directory / "curves.svg").string();
  command.insert(command.end(), {"-o", svg});
  const Outcome plotted = run_lockstep(command);
  CAPTURE(plotted.output);
  REQUIRE(plotted.exit_code == 0);
  const std::string text = read(svg);
  size_t curves = 0;
  for (size_t at = text.find("<polyline"); at != std::string::npos; at = text.find("<polyline", at + 1)) ++curves;
  CHECK(curves == 4);  // two panels
  CHECK(text.find("seed 1 &lt;&amp;&gt;") != std::string::npos);
  CHECK(run_lockstep({"plot", directory.string(), "-o", svg}).exit_code == 2);  // not a run
  std::filesystem::remove_all(directory);
}

TEST_CASE("a wrong command line ends with code 2") {
  CHECK(run_lockstep({"trian"}).exit_code == 2);
  CHECK(run_lockstep({"train"}).exit_code == 2);
  CHECK(run_lockstep({"train", "/nowhere.yaml"}).exit_code == 2);
  CHECK(run_lockstep({"--help"}).exit_code == 0);
}
