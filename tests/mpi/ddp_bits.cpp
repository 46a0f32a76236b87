// ranks: 2
// links: train
// distributed.average: ranks against PyTorch's DistributedDataParallel on two ranks, to the bit: what its reducer makes
// of the ranks' gradients, and what its optimizer makes of that (tests/golden/ddp.json, from real gloo processes).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "support/golden.h"
#include "train/trainer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string& config_of(const std::string& run) {
  static const std::string regression =
      "run: {seed: 0}\n"
      "model: {layers: [{linear: 32}, relu, {linear: 1}]}\n"
      "data: {train: {kind: synthetic, name: normal_regression, samples: 16, shape: [10], seed: 100, seed_per_rank: "
      "true}}\n"
      "sampler: {shuffle: false}\n"
      "train: {epochs: 3, batch_size: 16, loss: mse}\n"
      "optimizer: {kind: sgd, lr: 0.1}\n";
  static const std::string classes =
      "run: {seed: 42}\n"
      "model: {layers: [{linear: 16}, relu, {linear: 3}]}\n"
      "data: {train: {kind: synthetic, name: teacher, samples: 229, shape: [8], classes: 3, seed: 7, first: 0, count: "
      "128}}\n"
      "sampler: {shuffle: true, seed: 9, uneven: drop}\n"
      "train: {epochs: 1, batch_size: 16}\n"
      "optimizer: {kind: sgd, lr: 0.1}\n";
  return run == "003" ? regression : classes;
}

struct Replica {
  Config config;
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  RunLog log{"", false};
  Trainer trainer;

  Replica(Communicator& comm, const std::string& run, const std::vector<std::string>& overrides)
      : config(parse_config(config_of(run), "ddp.yaml", overrides)), trainer(config, *backend, comm, log) {}
  ParameterStore& store() { return trainer.network().store(); }
  // parameters() one after another, in PyTorch's layout.
  std::vector<float> flat(bool gradients) {
    std::vector<float> all;
    for (size_t id = 0; id < store().parameters().size(); ++id) {
      const auto one = static_cast<ParameterId>(id);
      const auto values = gradients ? store().canonical_gradient(one) : store().canonical_value(one);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  void set(const std::vector<float>& values) {
    size_t at = 0;
    for (size_t id = 0; id < store().parameters().size(); ++id) {
      const auto count = static_cast<size_t>(store().parameters()[id].shape.numel());
      store().set_canonical(static_cast<ParameterId>(id), std::span(values).subspan(at, count));
      at += count;
    }
  }
  // Gradients in PyTorch's layout, into the arena: stored as the values are.
  void set_gradients(const std::vector<float>& gradients) {
    const std::vector<float> kept(store().values().begin(), store().values().end());
    set(gradients);
    std::ranges::copy(store().values(), store().gradients().begin());
    std::ranges::copy(kept, store().values().begin());
  }
};

size_t unequal(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
  return count;
}

const std::vector<std::vector<std::string>> kSettings{
    {"distributed.average=ranks", "distributed.overlap=false"},
    {"distributed.average=ranks", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"},
    {"distributed.average=ranks", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0",
     "distributed.overlap=false"}};

}  // namespace

TEST_CASE("the same local gradients become the same synchronised gradient as in DDP") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    for (const auto& run : golden("ddp.json")["runs"]) {
      for (const auto& settings : kSettings) {
        Replica replica(*comm, run["name"], settings);
        GradientSynchronizer& sync = replica.trainer.synchronizer();
        for (const auto& step : run["steps"]) {
          replica.set_gradients(flat_f32(step["local"][static_cast<size_t>(env.rank())]));
          sync.begin_micro_step(0, 1);
          for (const ParameterId id : replica.store().arena_order()) sync.on_ready(id);
          sync.finish();
          CHECK_EQ(differs_bits(replica.flat(true), flat_f32(step["synced"])), "");
        }
      }
    }
  }
}

TEST_CASE("the synchronised gradient becomes the same weights as in DDP") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  for (const auto& run : golden("ddp.json")["runs"]) {
    Replica replica(*comm, run["name"], kSettings[0]);
    const auto optimizer = make_optimizer(
        {.kind = "sgd", .lr = 0.1}, make_parameter_groups(replica.store(), {}, resolve({.kind = "sgd", .lr = 0.1})),
        replica.store().gradients().size(), replica.backend->optimizer_ops());
    for (const auto& step : run["steps"]) {
      replica.set_gradients(flat_f32(step["synced"]));
      optimizer->step(replica.store().trainable_values(), replica.store().gradients());
      CHECK_EQ(differs_bits(replica.flat(false), flat_f32(step["weights"])), "");
    }
  }
}

// A rank's own forward and backward: the order of the sums inside a matrix product, or of the exponential's polynomial,
// is the library's, and PyTorch's own bits change with MKL_CBWR or ATEN_CPU_CAPABILITY (tests/golden/README.md).
TEST_CASE("local gradients are PyTorch's but for the last bits") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  for (const auto& run : golden("ddp.json")["runs"]) {
    Replica replica(*comm, run["name"], {"distributed.sync=false"});
    size_t different = 0, all = 0, step_in_run = 0;
    double worst = 0;
    for (const auto& step : run["steps"]) {
      if (step_in_run > 0) replica.set(flat_f32(run["steps"][step_in_run - 1]["weights"]));
      const int64_t steps = replica.trainer.plan().epoch().steps(), k = static_cast<int64_t>(step_in_run++);
      if (k % steps == 0) replica.trainer.begin_epoch(k / steps);
      replica.trainer.train_step(k % steps);
      const auto found = replica.flat(true), expected = flat_f32(step["local"][static_cast<size_t>(env.rank())]);
      different += unequal(found, expected), all += found.size();
      for (size_t i = 0; i < found.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]));
    }
    MESSAGE(run["name"] << ", rank " << env.rank() << ": " << different << " of " << all
                        << " local gradients differ in bits, by at most " << worst);
    CHECK(worst <= 2e-7);
  }
}

TEST_CASE("three steps of DDP are followed from the start") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  for (const auto& run : golden("ddp.json")["runs"]) {
    Replica replica(*comm, run["name"], kSettings[1]);
    size_t step_in_run = 0;
    for (const auto& step : run["steps"]) {
      const int64_t steps = replica.trainer.plan().epoch().steps(), k = static_cast<int64_t>(step_in_run++);
      if (k % steps == 0) replica.trainer.begin_epoch(k / steps);
      replica.trainer.train_step(k % steps);
      CHECK(differs(replica.flat(true), flat_f32(step["synced"]), 1e-6, 2e-7) == "");
      CHECK(differs(replica.flat(false), flat_f32(step["weights"]), 1e-6, 1e-7) == "");
    }
  }
}
