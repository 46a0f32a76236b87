// A training step after the first ones: no heap allocation, no new page, no weight copied into another layout. Counted
// in a process of its own (bench/step.cpp), because the count is of everything a process does.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kMlp = R"(
model: {preset: mlp_752}
data: {train: {kind: synthetic, name: random, samples: 640, shape: [2], classes: 2}}
train: {batch_size: 32}
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
device: {kind: cpu, threads: 1}
)";

constexpr const char* kConvNet = R"(
model: {preset: mnist_convnet}
data: {train: {kind: synthetic, name: random, samples: 640, shape: [1, 28, 28], classes: 10}}
train: {batch_size: 64}
optimizer: {kind: adamw, lr: 1e-4}
device: {kind: cpu, threads: 1}
)";

std::string program() {
  return (fs::path(LOCKSTEP_BINARY).parent_path().parent_path() / "bench" / "bench_step").string();
}

// True, with the reason printed, where the program was left out of the build.
bool skipped() {
  if (fs::exists(program())) return false;
  MESSAGE("SKIPPED: bench_step is not built (LOCKSTEP_BENCH=OFF)");
  return true;
}

// Fifty steady steps: five epochs of the ConvNet's data, two and a half of the MLP's.
Outcome steps(const char* config, const std::vector<std::string>& environment = {},
              const std::vector<std::string>& overrides = {}, int ranks = 1) {
  const fs::path file = fs::temp_directory_path() / ("steady_step_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << config;
  std::vector<std::string> command{"env", "OMP_NUM_THREADS=1"};  // a second thread's first steps come when they may
  command.insert(command.end(), environment.begin(), environment.end());
  for (const char* word : {"--warmup", "12", "--steps", "50", "--blocks", "5", "--mark"}) command.emplace_back(word);
  command.insert(command.begin() + 2 + static_cast<long>(environment.size()), {program(), file.string()});
  for (const std::string& override : overrides) command.insert(command.end(), {"--set", override});
  const Outcome outcome = run_process(ranks > 1 ? mpirun(ranks, command) : command, 120);
  fs::remove(file);
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
  return outcome;
}

nlohmann::json measured(const Outcome& outcome) {
  const size_t at = outcome.output.find("\n{\"world_size\"");
  REQUIRE_MESSAGE(at != std::string::npos, outcome.output);
  return nlohmann::json::parse(outcome.output.substr(at + 1, outcome.output.find('\n', at + 1) - at - 1));
}

// Lines of oneDNN about executed primitives of one kind, within the steady steps.
int executed(const std::string& output, const std::string& kind) {
  std::istringstream lines(output);
  bool steady = false;
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("steady steps: ")) steady = line.ends_with("begin");
    if (steady && line.find("exec,") != std::string::npos && line.find("," + kind + ",") != std::string::npos) ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("a steady step of the MLP allocates nothing and touches no new page") {
  if (skipped()) return;
  const nlohmann::json result = measured(steps(kMlp));
  if (!result["steady_step"].contains("allocations")) {
    MESSAGE("SKIPPED: a sanitizer owns malloc in this build");
    return;
  }
  CHECK_GT(result["start_up"]["allocations"]["own"].get<double>(), 0);  // the counter counts
  CHECK_EQ(result["steady_step"]["allocations"]["own"].get<double>(), 0);
  CHECK_EQ(result["steady_step"]["allocations"]["onednn"].get<double>(), 0);
  CHECK_EQ(result["steady_step"]["page_faults"].get<double>(), 0);
}

TEST_CASE("a steady step of the ConvNet allocates nothing of ours and touches no new page") {
  if (skipped()) return;
  const nlohmann::json result = measured(steps(kConvNet));
  if (!result["steady_step"].contains("allocations")) {
    MESSAGE("SKIPPED: a sanitizer owns malloc in this build");
    return;
  }
  CHECK_GT(result["start_up"]["allocations"]["onednn"].get<double>() +
               result["start_up"]["allocations"]["own"].get<double>(),
           0);
  CHECK_EQ(result["steady_step"]["allocations"]["own"].get<double>(), 0);
  CHECK_EQ(result["steady_step"]["page_faults"].get<double>(), 0);
}

TEST_CASE("a steady step with a frozen body goes backward through its head only and allocates nothing") {
  if (skipped()) return;
  std::string config = kConvNet;
  config.replace(config.find("lr: 1e-4"), 8, "lr: 1e-4, groups: [{match: ['conv*', fc1.weight], trainable: false}]");
  const Outcome outcome = steps(config.c_str(), {"ONEDNN_VERBOSE=1", "DNNL_VERBOSE=1"});
  CHECK_EQ(executed(outcome.output, "convolution"), 50 * 2);    // forward alone
  CHECK_GE(executed(outcome.output, "inner_product"), 50 * 1);  // fc1: no gradient of its weight nor of its input
  const nlohmann::json result = measured(outcome);
  if (result["steady_step"].contains("allocations"))
    CHECK_EQ(result["steady_step"]["allocations"]["own"].get<double>(), 0);
}

TEST_CASE("a steady step of two ranks allocates nothing whatever travels and however") {
  if (skipped()) return;
  for (const std::string backend : {"shm", "mpi"}) {
    for (const std::string compress : {"none", "bf16", "fp16"}) {
      CAPTURE(backend);
      CAPTURE(compress);
      const nlohmann::json result =
          measured(steps(kMlp, {},
                         {"distributed.backend=" + backend, "distributed.compress=" + compress,
                          "distributed.first_bucket_mb=0", "distributed.bucket_mb=0", "train.batch_size=16"},
                         2));
      if (!result["steady_step"].contains("allocations")) {
        MESSAGE("SKIPPED: a sanitizer owns malloc in this build");
        return;
      }
      CHECK_EQ(result["world_size"].get<int>(), 2);
      CHECK_GT(result["start_up"]["allocations"]["own"].get<double>(), 0);
      CHECK_EQ(result["steady_step"]["allocations"]["own"].get<double>(), 0);
    }
  }
}

TEST_CASE("a steady step of the ConvNet reorders nothing") {
  if (skipped()) return;
  const std::string output = steps(kConvNet, {"ONEDNN_VERBOSE=1", "DNNL_VERBOSE=1"}).output;
  CHECK_GE(executed(output, "convolution"), 50 * 5);  // two forward, two for the weights, one for the data
  CHECK_EQ(executed(output, "reorder"), 0);
}

TEST_CASE("a steady step in bf16 or fp16 allocates nothing of ours and touches no new page") {
  if (skipped()) return;
  for (const char* precision : {"bf16", "fp16"}) {
    const std::string train = "train: {batch_size: 64";
    std::string config = kConvNet;
    config.insert(config.find(train) + train.size(), std::string(", precision: ") + precision);
    const nlohmann::json result = measured(steps(config.c_str()));
    if (!result["steady_step"].contains("allocations")) {
      MESSAGE("SKIPPED: a sanitizer owns malloc in this build");
      return;
    }
    CAPTURE(precision);
    CHECK_EQ(result["steady_step"]["allocations"]["own"].get<double>(), 0);
    CHECK_EQ(result["steady_step"]["page_faults"].get<double>(), 0);
  }
}
