// Whole trainings on a real GPU beside the CPU's: losses to rounding, the same bits twice, every precision, NCCL on one
// rank, two ranks that share the GPU by way of the host.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

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
    "    - {dropout: 0.25}\n"
    "    - flatten\n"
    "    - {linear: 4}\n" +
    kData;

TrainingRun run(const std::string& yaml, int ranks, std::vector<std::string> overrides) {
  TrainingRun made = train_text(yaml, ranks, overrides, 200);
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
  const TrainingRun gpu = run(kMlp, 2, {"device.kind=cuda", "device.oversubscribe=true"});
  const TrainingRun cpu = run(kMlp, 2, {"device.kind=cpu"});
  CHECK(difference(gpu.losses(), cpu.losses()) < 1e-3);
}
