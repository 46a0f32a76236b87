// ranks: 1 2 4
// links: train
// Convolutional and residual networks on simulated GPUs: the CPU's losses and weights to rounding, dropout and batch
// norm over the ranks included.
#include <doctest/doctest.h>

#include "sim/training.h"

using namespace lockstep;
using test::difference;
using test::GpuRun;
using test::SharedFolder;
using Overrides = std::vector<std::string>;

namespace {

const std::string kData =
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 30, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 19, shape: [3, 8, 8], classes: 4, seed: 6}\n"
    "train: {epochs: 1, batch_size: 4}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n";
const std::string kConvNet =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - {conv2d: {out: 32, kernel: 3}}\n"
    "    - relu\n"
    "    - flatten\n"
    "    - {linear: 20}\n"
    "    - relu\n"
    "    - {dropout: 0.25}\n"  // of flat samples: others have their own order on each device, and so their masks
    "    - {linear: 4}\n" +
    kData;
const std::string kResidual =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, stride: 2, padding: 1, bias: false}}\n"
    "    - batch_norm\n"
    "    - {relu: {}, name: block}\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - {add: block}\n"
    "    - relu\n"
    "    - {adaptive_avg_pool2d: 1}\n"
    "    - flatten\n"
    "    - {linear: 4}\n" +
    kData;

// Rounding differs in every layer, and a batch norm divides by what is small at times.
constexpr double kTolerance = 2e-4;

void compare(const std::string& yaml, const Overrides& overrides, double tolerance = kTolerance) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  sim::reset({});
  const auto on = [&](const std::string& device, const Overrides& more) {
    Overrides all = overrides;
    all.insert(all.end(), more.begin(), more.end());
    all.push_back("device.kind=" + device);
    return GpuRun(env, yaml, all, folder / device);
  };
  const GpuRun cpu = on("cpu", {"device.convolution=direct"}), gpu = on("cuda", {});
  CHECK(sim::last_misuse() == "");
  CHECK(gpu.steps == cpu.steps);
  CHECK(difference(gpu.losses, cpu.losses) < tolerance);
  CHECK(difference(gpu.validation, cpu.validation) < tolerance);
  CHECK(difference(gpu.weights, cpu.weights) < tolerance);
}

}  // namespace

TEST_CASE("a ConvNet with dropout on GPUs follows the CPU") {
  compare(kConvNet, {});
  compare(kConvNet, {"train.accumulate=2", "train.batch_size=2", "optimizer.nesterov=true", "train.ema=0.9"});
  compare(kConvNet, {"distributed.first_bucket_mb=0", "distributed.bucket_mb=0"});
}

TEST_CASE("a residual net with batch norm on GPUs follows the CPU whatever its statistics are of") {
  for (const char* policy : {"rank0", "average", "sync"})
    compare(kResidual, {fmt::format("distributed.batch_norm={}", policy), "train.on_nonfinite=skip"});
}

TEST_CASE("a residual net in bf16 on GPUs follows the CPU") { compare(kResidual, {"train.precision=bf16"}, 0.1); }

TEST_CASE("convolutional networks on GPUs have the same bits in every run and after a resume") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  for (const std::string* yaml : {&kConvNet, &kResidual}) {
    const std::string name = yaml == &kConvNet ? "convnet " : "residual ";
    const Overrides overrides = {"device.kind=cuda",         "distributed.batch_norm=average",
                                 "checkpoint.every=2 steps", "checkpoint.keep=1000",
                                 "train.epochs=2",           "distributed.bucket_mb=0"};
    sim::reset({.seed = 3});
    const GpuRun whole(env, *yaml, overrides, folder / (name + "whole"));
    sim::reset({.seed = 4});
    Overrides rest = overrides;
    rest.emplace_back("checkpoint.every=never");
    const GpuRun again(env, *yaml, rest, folder / (name + "again"));
    const GpuRun resumed(env, *yaml, rest, folder / (name + "resumed"),
                         {.from = folder / (name + "whole/checkpoints/step-000000002")});
    CHECK(again.digest == whole.digest);
    CHECK(resumed.digest == whole.digest);
  }
}
