// The commands of docs/after_training.md, one after another as they stand there, and inspect and compare as commands.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "support/memory_folder.h"
#include "support/run_folder.h"
#include "support/saved_command.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

// A project of its own: the repository's data, a copy of the config, and where the commands write.
struct Project {
  fs::path path = memory_folder() / fmt::format("lockstep-docs-{}", getpid());
  Project() {
    fs::create_directories(path / "configs");
    fs::copy_file(LOCKSTEP_SOURCE_DIR "/configs/mnist_quick.yaml", path / "configs/mnist_quick.yaml");
    fs::create_directory_symlink(LOCKSTEP_SOURCE_DIR "/datasets", path / "datasets");
  }
  ~Project() { fs::remove_all(path); }
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words{""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(page);
  bool block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      block = line == "```console";
    } else if (block && line.starts_with("$ ")) {
      commands.push_back(line.substr(2));
    }
  }
  return commands;
}

Outcome run_in(const fs::path& folder, const std::string& line) {
  std::vector<std::string> words = words_of(line);
  int ranks = 1;
  if (words[0] == "mpirun") {
    REQUIRE(words[1] == "-np");
    ranks = std::stoi(words[2]);
    words.erase(words.begin(), words.begin() + 3);
  }
  REQUIRE(words[0] == "lockstep");
  words[0] = LOCKSTEP_BINARY;
  // A part of the data: the commands are what is tried.
  if (words[1] == "train") words.insert(words.end(), {"--set", "data.train.count=1000", "--set", "data.val.count=300"});
  if (ranks > 1) words = mpirun(ranks, words);
  words.insert(words.begin(), {"env", "-C", folder.string()});
  return run_process(words, 200);
}

}  // namespace

TEST_CASE("after training: every command of the page works as it stands there") {
  const Project project;
  const std::vector<std::string> commands = commands_of(file_text(LOCKSTEP_SOURCE_DIR "/docs/after_training.md"));
  CHECK(commands.size() >= 13);
  for (const std::string& command : commands) {
    CAPTURE(command);
    const Outcome outcome = run_in(project.path, command);
    CHECK_MESSAGE(outcome.exit_code == 0, outcome.output);
  }
  CHECK(fs::exists(project.path / "runs/after/model.onnx"));
  CHECK(file_text(project.path / "runs/after/digits.csv").starts_with("sample,class,probability,probability_0,"));
}

TEST_CASE("inspect: a checkpoint's content and a config's layers and memory are printed") {
  const RunFolder folder(R"(
model: {layers: [{linear: 16, name: first}, batch_norm, relu, {linear: 3}]}
data:
  train: {kind: synthetic, name: random, samples: 90, shape: [5], classes: 3}
  val: {kind: synthetic, name: random, samples: 30, shape: [5], classes: 3}
train: {epochs: 1, batch_size: 10}
checkpoint: {every: 1 epoch}
)");
  REQUIRE(folder.train("run", 1, {}).exit_code == 0);
  const Outcome saved = run_lockstep({"inspect", (folder / "run").string(), "--tensors", "--batch", "10,20"});
  REQUIRE_MESSAGE(saved.exit_code == 0, saved.output);
  CHECK(saved.says("step 9, epoch 2 (0 samples into it)"));
  CHECK(saved.says("global batch 10 = 10 x 1 ranks x 1 accumulated"));
  CHECK(saved.says("validation loss "));
  CHECK(saved.says("validation accuracy "));
  CHECK(saved.says("manifest.json"));
  CHECK(saved.says("first.weight"));
  CHECK(saved.says("179 parameters, 179 trainable, 0 frozen"));
  const Outcome config = run_lockstep({"inspect", (folder / "run.yaml").string(), "--world-size", "2"});
  REQUIRE_MESSAGE(config.exit_code == 0, config.output);
  CHECK(config.says("every other rank"));
  CHECK(config.says("memory, batch per rank            10          20          40          80"));
  const Outcome nowhere = run_lockstep({"inspect", (folder / "run.yaml").string(), "--fit", "3KiB"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.says("needs"));
}

// Slurm's grant stands for what the machine has free, so that the numbers are known.
TEST_CASE("inspect: fit auto shares what the machine can give and writes a config that trains") {
  const RunFolder folder(R"(
model: {layers: [{linear: 8192}, relu, {linear: 3}]}
data: {train: {kind: synthetic, name: random, samples: 20000, shape: [4], classes: 3}}
train: {max_steps: 1, batch_size: 4}
)");
  const auto fit = [&](const char* granted, const char* ranks, const char* bytes) {
    return run_process({"env", std::string("SLURM_MEM_PER_NODE=") + granted, LOCKSTEP_BINARY, "inspect",
                        (folder / "run.yaml").string(), "--world-size", ranks, "--fit", bytes, "--out",
                        (folder / "fitted.yaml").string()},
                       60);
  };
  const auto batch_of = [](const Outcome& outcome) {
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
    return std::stoll(outcome.output.substr(outcome.output.find("iB: ") + 4));
  };
  // Nine tenths of 400 MiB, without the 128 MiB that the program takes on each rank.
  const Outcome one = fit("400", "1", "auto"), two = fit("400", "2", "auto");
  CHECK(one.says("largest batch of a rank within 232.0 MiB: "));
  CHECK(two.says("largest batch of a rank within 52.0 MiB: "));
  const int64_t batch = batch_of(two);
  CHECK(batch > 10);
  CHECK(batch_of(one) > 4 * batch);
  CHECK(batch_of(one) < 20000);
  CHECK(bytes_of(folder / "fitted.yaml").find(fmt::format("batch_size: {}", batch)) != std::string::npos);
  CHECK(run_process({LOCKSTEP_BINARY, "train", (folder / "fitted.yaml").string(), "--set",
                     "run.dir=" + (folder / "fitted").string()},
                    100)
            .exit_code == 0);
  CHECK(batch_of(fit("400", "2", "52MiB")) == batch);
  const Outcome none = fit("200", "2", "auto");
  CHECK(none.exit_code == 2);
  CHECK(none.says("--fit auto: nine tenths of 200.0 MiB"));
  CHECK(none.says("start fewer ranks per node, or ask for more memory"));
}

TEST_CASE("compare: the exit code says whether two runs have the same bits") {
  const RunFolder folder(R"(
model: {layers: [{linear: 3}]}
data: {train: {kind: synthetic, name: random, samples: 40, shape: [5], classes: 3}}
train: {epochs: 1, batch_size: 4}
checkpoint: {every: 5 steps}
)");
  for (const char* run : {"a", "b"}) REQUIRE(folder.train(run, 1, {}).exit_code == 0);
  REQUIRE(folder.train("c", 1, {"--set", "optimizer.lr=0.5"}).exit_code == 0);
  const auto compare = [&](const char* a, const char* b) {
    return run_lockstep({"compare", (folder / a).string(), (folder / b).string()});
  };
  CHECK(compare("a", "b").exit_code == 0);
  const Outcome different = compare("a", "c");
  CHECK(different.exit_code == 1);
  CHECK(different.says("model: 0.weight"));
  CHECK(different.says("15 of 15 values"));
  CHECK(compare("a", "a/checkpoints/step-000000005").exit_code == 1);
  CHECK(compare("a", "none").exit_code == 2);
}
