// ranks: 1 2
// links: train
// What a config says of a GPU's arithmetic arrives there: cuDNN's search, its workspace, TF32, determinism.
#include <doctest/doctest.h>

#include "core/error.h"
#include "sim/training.h"

using namespace lockstep;
using test::difference;
using test::GpuRun;
using test::SharedFolder;

namespace {

const std::string kConvNet =
    "model: {layers: [{conv2d: {out: 8, kernel: 3, padding: 1}}, relu, {max_pool2d: 2}, {conv2d: {out: 8, kernel: 3}}, "
    "relu, flatten, {linear: 4}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 16, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 8, shape: [3, 8, 8], classes: 4, seed: 6}\n"
    "train: {epochs: 2, batch_size: 4}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "device: {kind: cuda}\n";

// A training under one order of the streams; afterwards sim::calls() are its calls.
GpuRun train(const std::vector<std::string>& overrides, uint64_t seed = 1) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({.seed = seed});
  GpuRun run(env, kConvNet, overrides, folder / "run");
  CHECK(sim::last_misuse() == "");
  return run;
}

}  // namespace

TEST_CASE("convolutions are searched as device.convolution_search says") {
  const GpuRun expected = train({});
  CHECK(sim::calls()["cudnnGetConvolutionForwardAlgorithm_v7"] > 0);
  CHECK(sim::calls()["cudnnFindConvolutionForwardAlgorithmEx"] == 0);
  const GpuRun measured = train({"device.convolution_search=measure"});
  CHECK(sim::calls()["cudnnGetConvolutionForwardAlgorithm_v7"] == 0);
  CHECK(sim::calls()["cudnnFindConvolutionForwardAlgorithmEx"] > 0);
  CHECK(difference(measured.weights, expected.weights) < 1e-4);
}

TEST_CASE("device.convolution_workspace_mb bounds what a convolution may want") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({});
  CHECK_THROWS_WITH_AS(GpuRun(env, kConvNet, {"device.convolution_workspace_mb=0"}, folder / "run"),
                       doctest::Contains("no deterministic algorithm of 0 bytes of workspace"), Error);
}

TEST_CASE("device.tf32 rounds what convolutions and linear layers multiply") {
  const GpuRun exact = train({}), rounded = train({"device.tf32=true"});
  CHECK(difference(rounded.weights, exact.weights) > 1e-7);
  CHECK(difference(rounded.weights, exact.weights) < 5e-3);
}

TEST_CASE("device.deterministic decides whether two runs have the same bits") {
  CHECK(train({}, 1).digest == train({}, 2).digest);
  const GpuRun one = train({"device.deterministic=false"}, 1), other = train({"device.deterministic=false"}, 2);
  CHECK(one.digest != other.digest);
  CHECK(difference(one.weights, other.weights) < 1e-4);
}
