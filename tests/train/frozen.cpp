// Frozen parameters against PyTorch's requires_grad=False, and the work that freezing saves.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "comm/serial_communicator.h"
#include "support/golden.h"
#include "train/trainer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string groups_of(const std::vector<std::string>& frozen) {
  if (frozen.empty()) return "[]";
  return fmt::format("[{{match: ['{}'], trainable: false}}]", fmt::join(frozen, "', '"));
}

struct Run {
  SerialCommunicator comm;
  Config config;
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  RunLog log{"", false};
  Trainer trainer;

  explicit Run(const std::string& yaml)
      : config(parse_config(yaml, "frozen.yaml", {})), trainer(config, *backend, comm, log) {}
  ParameterStore& store() { return trainer.network().store(); }
};

std::string convnet(const std::vector<std::string>& frozen) {
  return "model: {layers: [{conv2d: {out: 16, kernel: 3}, name: c1}, relu, {conv2d: {out: 16, kernel: 3}, name: c2}, "
         "relu, "
         "{max_pool2d: 2}, flatten, {linear: 64, name: f1}, relu, {linear: 10, name: f2}]}\n"
         "data: {train: {kind: synthetic, name: random, samples: 16, shape: [1, 16, 16], classes: 10}}\n"
         "train: {batch_size: 4, accumulate: 2}\n"
         "optimizer: {kind: adam, lr: 0.01, groups: " +
         groups_of(frozen) + "}\n";
}

}  // namespace

TEST_CASE("frozen parameters give PyTorch's weights and running statistics") {
  for (const auto& entry : golden("frozen.json")["cases"]) {
    const auto frozen = entry["frozen"].get<std::vector<std::string>>();
    CAPTURE(groups_of(frozen));
    Run run(
        "run: {seed: 42}\n"
        "model: {layers: [{linear: 16}, batch_norm, relu, {linear: 3}]}\n"
        "data: {train: {kind: synthetic, name: teacher, samples: 229, shape: [8], classes: 3, seed: 7, count: 48}}\n"
        "sampler: {shuffle: false}\n"
        "train: {batch_size: 16, clip_norm: 0.5}\n"
        "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1, groups: " +
        groups_of(frozen) + "}\n");
    run.trainer.begin_epoch(0);
    for (int64_t k = 0; k < 3; ++k) run.trainer.train_step(k);
    std::vector<float> weights;
    for (size_t id = 0; id < run.store().parameters().size(); ++id) {
      const auto values = run.store().canonical_value(static_cast<ParameterId>(id));
      weights.insert(weights.end(), values.begin(), values.end());
    }
    CHECK(differs(weights, flat_f32(entry["weights"]), 1e-5, 1e-6) == "");
    CHECK(differs(run.store().buffer(0), flat_f32(entry["running_mean"]), 1e-5, 1e-6) == "");
    CHECK(differs(run.store().buffer(1), flat_f32(entry["running_var"]), 1e-5, 1e-6) == "");
  }
}

TEST_CASE("a frozen convolutional body trains its head as if the body merely got no update") {
  const std::vector<std::string> body{"c1.*", "c2.*"};
  Run freezing(convnet(body));
  std::string no_update = convnet(body);
  no_update.replace(no_update.find("trainable: false"), 16, "lr: 0");
  Run oracle(no_update);
  for (Run* run : {&freezing, &oracle}) {
    run->trainer.begin_epoch(0);
    for (int64_t k = 0; k < 2; ++k) run->trainer.train_step(k);
  }
  for (const Parameter& p : freezing.store().parameters()) {
    CAPTURE(p.name);
    const auto id = freezing.store().find(p.name);
    CHECK(differs(freezing.store().canonical_value(id), oracle.store().canonical_value(id), 1e-5, 1e-6) == "");
    CHECK(p.trainable == p.name.starts_with("f"));
  }
}

TEST_CASE("weights or biases of convolutions may be frozen alone") {
  for (const auto& frozen : {std::vector<std::string>{"*.weight"}, {"bias"}, {"c2.weight", "f1.bias"}}) {
    CAPTURE(groups_of(frozen));
    Run freezing(convnet(frozen));
    std::string no_update = convnet(frozen);
    no_update.replace(no_update.find("trainable: false"), 16, "lr: 0");
    Run oracle(no_update);
    for (Run* run : {&freezing, &oracle}) {
      run->trainer.begin_epoch(0);
      for (int64_t k = 0; k < 2; ++k) run->trainer.train_step(k);
    }
    for (const Parameter& p : freezing.store().parameters()) {
      CAPTURE(p.name);
      const auto id = freezing.store().find(p.name);
      CHECK(differs(freezing.store().canonical_value(id), oracle.store().canonical_value(id), 1e-4, 1e-5) == "");
    }
  }
}

TEST_CASE("freezing takes memory and passes away and keeps the optimizer's arrays small") {
  Run whole(convnet({})), head(convnet({"c1.*", "c2.*", "f1.*"}));
  const size_t head_floats = 640 + 16;  // weights and biases of f2, in slices of 16
  CHECK(head.store().gradients().size() == head_floats);
  CHECK(head.store().values().size() == whole.store().values().size());
  CHECK(head.store().gradient(head.store().find("c1.weight")).empty());
  // Nothing below f2 goes backward: fewer activations live until then.
  CHECK(head.trainer.network().activation_bytes() < whole.trainer.network().activation_bytes());
}

TEST_CASE("a probe of a frozen gradient is refused") {
  std::string yaml = convnet({"c1.*"}) + "log: {watch: [\"gradient:c1.weight[0,0,0,0]\"]}\n";
  CHECK_THROWS_WITH(
      Run run(yaml),
      "log.watch 'gradient:c1.weight[0,0,0,0]': the parameter is frozen (trainable: false) and has no gradient");
}
