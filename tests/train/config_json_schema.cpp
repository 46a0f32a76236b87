// The JSON schema for editors accepts and refuses what the program itself does, judged by Python's jsonschema.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config_examples.h"
#include "support/memory_folder.h"
#include "support/python.h"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> verdicts(const std::vector<std::string>& configs) {
  const std::string python = python_with({"jsonschema", "ruamel.yaml"});
  if (python.empty()) return {};
  std::vector<std::string> command{python, LOCKSTEP_SOURCE_DIR "/tests/train/python/config_schema.py",
                                   LOCKSTEP_SOURCE_DIR "/docs/config.schema.json"};
  command.insert(command.end(), configs.begin(), configs.end());
  const Outcome outcome = run_process(command, 120);
  CHECK_MESSAGE(outcome.exit_code == 0, outcome.output);
  std::vector<std::string> lines;
  std::istringstream in(outcome.output);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  CHECK(lines.size() == configs.size());
  return lines;
}

// Files of these texts, gone with it.
struct Files {
  std::vector<std::string> paths;
  explicit Files(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      paths.push_back((memory_folder() / fmt::format("lockstep_schema_{}_{}.yaml", getpid(), paths.size())).string());
      std::ofstream(paths.back()) << text;
    }
  }
  ~Files() {
    for (const std::string& path : paths) fs::remove(path);
  }
};

}  // namespace

TEST_CASE("docs config.schema.json is the schema made from the table of keys") {
  check_page("docs/config.schema.json", config_json_schema());
}

TEST_CASE("the JSON schema accepts every config of the project and what the program prints of it") {
  std::vector<std::string> paths, printed;
  for (const auto& entry : fs::recursive_directory_iterator(LOCKSTEP_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml" || entry.path().filename().string().starts_with("sweep")) continue;
    paths.push_back(entry.path());
    printed.push_back(to_yaml(load_config(entry.path(), {})));
  }
  CHECK(paths.size() > 10);
  for (const std::string& text : examples()) {
    printed.push_back(text);
    printed.push_back(to_yaml(parse_config(text, "config.yaml", {})));
  }
  const Files files(printed);
  paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  const std::vector<std::string> found = verdicts(paths);
  for (size_t i = 0; i < found.size(); ++i) CHECK_MESSAGE(found[i] == "valid", paths[i]);
}

TEST_CASE("the JSON schema refuses what the program refuses") {
  const std::vector<std::string> wrong{
      with_sections("trian: {epochs: 1}\n"),
      with_sections("train: {epochs: 0}\n"),
      with_sections("train: {epochs: 1.5}\n"),
      with_sections("train: {shuffle: true}\n"),
      with_sections("sampler: {shuffle: 1}\n"),
      with_sections("sampler: {uneven: padded}\n"),
      with_sections("optimizer: {kind: sgd, betas: [0.9, 0.99]}\n"),
      with_sections("optimizer: {kind: adam, momentum: 0.9}\n"),
      with_sections("optimizer: {kind: adam, lr: fast}\n"),
      with_sections("schedule: {kind: cosine, gamma: 0.1}\n"),
      with_sections("eval: {every: 3}\n"),
      with_sections("eval: {every: 0 steps}\n"),
      with_sections("run: {max_time: soon}\n"),
      with_sections("run: {seed: -1}\n"),
      "data: {train: {kind: toy}}\n",
      "model: {layers: []}\ndata: {train: {kind: toy}}\n",
      "model: {layers: [{liner: 2}]}\ndata: {train: {kind: toy}}\n",
      "model: {layers: [linear]}\ndata: {train: {kind: toy}}\n",
      "model: {layers: [{linear: 2, relu: null}]}\ndata: {train: {kind: toy}}\n",
      "model: {layers: [{linear: {out: 2, kernel: 3}}]}\ndata: {train: {kind: toy}}\n",
      "model: {layers: [{linear: 2}]}\ndata: {train: {kind: csv}}\n",
      "model: {layers: [{linear: 2}]}\ndata: {train: {kind: csv, file: a.csv, images: b.gz}}\n",
      "model: {layers: [{linear: 2}]}\ndata: {train: {kind: parquet, file: a}}\n"};
  const Files files(wrong);
  const std::vector<std::string> found = verdicts(files.paths);
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK_MESSAGE(found[i] != "valid", wrong[i]);
    CHECK_MESSAGE(message(wrong[i]) != "accepted", wrong[i]);
  }
}
