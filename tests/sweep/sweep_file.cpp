// SWEEP.yaml is read as strictly as a config, and becomes trials whose configs have been checked.
#include "sweep/sweep_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "support/fuzz.h"
#include "sweep/trials.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

class Project {
 public:
  Project() : path_(fs::temp_directory_path() / ("lockstep-sweep-file-" + std::to_string(getpid()))) {
    fs::create_directories(path_ / "configs");
    std::ofstream(path_ / "configs/base.yaml")
        << "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
           "data: {train: {kind: synthetic, name: random, samples: 64, shape: [3], classes: 2}}\n"
           "train: {batch_size: 8}\noptimizer: {kind: sgd, lr: 0.1}\n";
  }
  ~Project() { fs::remove_all(path_); }
  std::string file() const { return (path_ / "sweep.yaml").string(); }
  std::string folder() const { return path_.string(); }
  std::vector<Trial> trials(const std::string& text, int64_t cores = 8) const {
    return make_trials(parse_sweep("config: configs/base.yaml\n" + text, file()), cores);
  }
  std::string refusal(const std::string& text) const {
    try {
      trials(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  fs::path path_;
};

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("a grid is every combination with the last key changing fastest") {
  const Project project;
  const auto trials = project.trials("grid: {world_size: [1, 2], batch_size: [4, 8], optimizer.lr: [0.1]}\n");
  REQUIRE(trials.size() == 4);
  CHECK(trials[0].name == "world_size=1,batch_size=4,lr=0.1");
  CHECK(trials[1].name == "world_size=1,batch_size=8,lr=0.1");
  CHECK(trials[3].world_size == 2);
  CHECK(trials[3].batch_size == 8);
  CHECK(trials[3].global_batch == 16);
  CHECK(trials[3].dir == project.folder() + "/runs/sweep/" + trials[3].name);
  CHECK(trials[3].threads == 4);  // 8 cores for 2 ranks, and for one rank the same
  CHECK(trials[0].threads == 4);
}

TEST_CASE("a list gives each trial several keys and multiplies with a grid") {
  const Project project;
  const auto trials = project.trials(
      "list: [{world_size: 1, global_batch_size: 8}, {world_size: 2, global_batch_size: 8, accumulate: 2}]\n"
      "grid: {seed: [1, 2]}\nset: {train.batch_size: null}\n");
  REQUIRE(trials.size() == 4);
  CHECK(trials[2].name == "world_size=2,global_batch_size=8,accumulate=2,seed=1");
  CHECK(trials[2].batch_size == 2);
  CHECK(trials[2].global_batch == 8);
}

TEST_CASE("unknown keys are refused with their place and the nearest known key") {
  const Project project;
  CHECK(has(project.refusal("gird: {lr: [1]}\n"),
            "sweep.yaml:2:1: unknown key 'gird' at the top level; did you mean 'grid'?"));
  CHECK(has(project.refusal("grid: {wordl_size: [1]}\n"),
            "sweep.yaml:2:8: unknown key 'wordl_size'; did you mean 'world_size'?"));
  CHECK(has(project.refusal("grid: {optimizer.lrr: [1]}\n"), "optimizer.lr"));
  CHECK(has(project.refusal("grid: {optimizer.lrr: [1]}\n"), "sweep.yaml:2:24: trial lrr=1: "));
  CHECK(has(project.refusal("grid: {optimizer.lr: [fast]}\n"), "expected a number"));
  CHECK(has(project.refusal("grid: {lr: [0.1]}\njobs: 0\n"), "jobs"));
  CHECK(has(parse_sweep("config: a\ngrid: {lr: [1]}\n", "s.yaml").dir, "runs/sweep"));
  CHECK_THROWS_WITH(parse_sweep("grid: {lr: [1]}\n", "s.yaml"), "s.yaml:1:1: missing key 'config'");
}

TEST_CASE("what makes no sense in a sweep is refused") {
  const Project project;
  CHECK(has(project.refusal("jobs: 2\n"), "nothing is swept: expected grid or list"));
  CHECK(has(project.refusal("grid: {lr: 0.1}\n"), "grid.lr: expected a list of values"));
  CHECK(has(project.refusal("grid: {lr: []}\n"), "expected a list of values"));
  CHECK(has(project.refusal("grid: {run.dir: [a]}\n"), "every trial has a folder of its own"));
  CHECK(has(project.refusal("grid: {lr: [0.1, 0.1]}\n"), "trial lr=0.1 is there twice"));
  CHECK(has(project.refusal("grid: {lr: [0.1], optimizer.lr: [0.2]}\n"), "optimizer.lr is set twice"));
  CHECK(has(project.refusal("set: {lr: 0.1}\ngrid: {lr: [0.2]}\n"), "optimizer.lr is set twice"));
  CHECK(has(project.refusal("set: {train.batch_size: null}\ngrid: {world_size: [3], global_batch_size: [8]}\n"),
            "trial world_size=3"));
}

TEST_CASE("the number of trials is bounded before any is made") {
  const Project project;
  CHECK(has(project.refusal("most_trials: 3\ngrid: {seed: [1, 2], lr: [1, 2]}\n"),
            "4 trials are more than most_trials: 3"));
  std::string many = "[0";
  for (int i = 1; i < 900; ++i) many += ", " + std::to_string(i);
  many += "]";
  std::string grid = "grid:\n";
  for (const char* key :
       {"seed", "sampler.seed", "data.train.seed", "max_steps", "epochs", "batch_size", "accumulate", "log.every"})
    grid += std::string("  ") + key + ": " + many + "\n";
  CHECK(has(project.refusal(grid), "more than most_trials: 64"));
}

TEST_CASE("folder names are plain and differ where texts differ") {
  CHECK(folder_name("world_size=2,lr=1e-3") == "world_size=2,lr=1e-3");
  std::set<std::string> names;
  for (const char* text : {"a/b", "a b", "../x", "..", "a=[1, 2]", "a=[1; 2]"}) {
    const std::string name = folder_name(text);
    CAPTURE(name);
    CHECK(name.find_first_of("/ ;[]") == std::string::npos);
    CHECK(name.front() != '.');
    names.insert(name);
  }
  CHECK(names.size() == 6);
  CHECK(folder_name(std::string(500, 'x')).size() == 120);
}

TEST_CASE("lists and texts keep their type on the way to the trial") {
  const Project project;
  const auto trials =
      project.trials("grid:\n  train.class_weights: [[1, 2], [2, 1]]\n  optimizer.kind: [\"adam\", sgd]\n");
  REQUIRE(trials.size() == 4);
  CHECK(trials[0].resolved.find("class_weights: [1, 2]") != std::string::npos);
  CHECK(trials[0].resolved.find("kind: adam") != std::string::npos);
  CAPTURE(trials[0].name);
  CHECK(trials[0].name.find("class_weights=_1,_2_,kind=adam-") == 0);
}

TEST_CASE("fuzzed sweep files are read or refused") {
  test::fuzz("sweep", [](const std::string& bytes) {
    const SweepSettings sweep = parse_sweep(bytes, "sweep.yaml");
    CHECK_FALSE((sweep.grid.empty() && sweep.list.empty()));
  });
}
