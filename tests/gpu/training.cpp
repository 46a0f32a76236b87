// Whole trainings on a GPU beside the CPU's: losses to rounding, the same bits twice, every precision, NCCL on one
// rank, two ranks that share the GPU by way of the host.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

const std::string kData =
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 64, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 19, shape: [3, 8, 8], classes: 4, seed: 6}\n"
    "train: {epochs: 2, batch_size: 8}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "log: {every: 1}\n";
const std::string kMlp =
    "model: {layers: [flatten, {linear: 64}, relu, {dropout: 0.3}, {linear: 32}, tanh, {linear: 4}]}\n" + kData;
const std::string kConvNet =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - {conv2d: {out: 32, kernel: 3}}\n"
    "    - relu\n"
    "    - flatten\n"
    "    - {linear: 20}\n"
    "    - {dropout: 0.25}\n"  // of flat samples: images have their own order on each device, and so their masks
    "    - {linear: 4}\n" +
    kData;

TrainingRun run(const std::string& yaml, int ranks, std::vector<std::string> overrides) {
  TrainingRun made = train_text(yaml, ranks, overrides, 200, GPU_PROGRAM);
  REQUIRE_MESSAGE(made.outcome.exit_code == 0, made.outcome.output);
  return made;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("a training on the GPU follows the CPU's") {
  for (const std::string* yaml : {&kMlp, &kConvNet}) {
    for (const auto& [precision, tolerance] : {std::pair{"fp32", 1e-3}, {"bf16", 0.1}, {"fp16", 0.1}}) {
      const std::vector<std::string> all = {std::string("train.precision=") + precision};
      std::vector<std::string> cpu = all, gpu = all;
      cpu.insert(cpu.end(), {"device.kind=cpu", "device.convolution=direct"});
      gpu.emplace_back("device.kind=cuda");
      CAPTURE(precision);
      CHECK(difference(run(*yaml, 1, gpu).losses(), run(*yaml, 1, cpu).losses()) < tolerance);
    }
  }
}

TEST_CASE("a training on the GPU ends with the same bits twice and takes NCCL on one rank") {
  const auto digest = [](const TrainingRun& made) { return made.of("end").at(0)["model_sha256"].get<std::string>(); };
  const TrainingRun first = run(kConvNet, 1, {"device.kind=cuda"});
  CHECK(first.outcome.says("communicator nccl"));
  CHECK(digest(run(kConvNet, 1, {"device.kind=cuda"})) == digest(first));
}

TEST_CASE("two ranks that share the GPU follow two ranks on the CPU") {
  for (const std::string* yaml : {&kMlp, &kConvNet}) {
    const TrainingRun gpu = run(*yaml, 2, {"device.kind=cuda", "device.oversubscribe=true"});
    CHECK(gpu.outcome.says("communicator staged shm"));
    const TrainingRun cpu = run(*yaml, 2, {"device.kind=cpu", "device.convolution=direct"});
    CHECK(difference(gpu.losses(), cpu.losses()) < 1e-3);
  }
}

TEST_CASE("a training on the GPU is rounded to TF32 on request alone") {
  const TrainingRun exact = run(kConvNet, 1, {"device.kind=cuda"});
  CHECK(exact.outcome.says("fp32 (without TF32)"));
  const TrainingRun rounded = run(kConvNet, 1, {"device.kind=cuda", "device.tf32=true"});
  CHECK(rounded.outcome.says("fp32 (products in TF32)"));
  const double most = difference(rounded.losses(), exact.losses());
  CHECK(most > 0);
  CHECK(most < 0.02);
}

TEST_CASE("a training on the GPU measures convolutions on request") {
  const TrainingRun found = run(kConvNet, 1, {"device.kind=cuda"});
  const TrainingRun measured = run(kConvNet, 1, {"device.kind=cuda", "device.convolution_search=measure"});
  CHECK(difference(measured.losses(), found.losses()) < 1e-3);
}

TEST_CASE("a training on the GPU goes on from a checkpoint with the same bits") {
  const auto folder = std::filesystem::temp_directory_path() / ("gpu_resume_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "net.yaml") << kConvNet;
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> command{GPU_PROGRAM,        "train", (folder / "net.yaml").string(), "--set",
                                     "device.kind=cuda", "--set", "checkpoint.every=1 epochs"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = run_process(command, 200);
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
  };
  const auto digest = [&](const char* run) {
    std::ifstream file(folder / run / "metrics.jsonl");
    std::string line, last;
    while (std::getline(file, line)) last = line.find("model_sha256") != std::string::npos ? line : last;
    return nlohmann::json::parse(last)["model_sha256"].get<std::string>();
  };
  const std::string dir = "run.dir=" + folder.string();
  train({"--set", dir + "/whole"});
  train({"--set", dir + "/parts", "--set", "train.epochs=1"});
  train({"--set", dir + "/parts", "--resume", "auto"});
  CHECK(digest("parts") == digest("whole"));
  std::filesystem::remove_all(folder);
}
