// ranks: 1 2 4 8
// links: train
// With virtual ranks a run has the same bits on any number of ranks: the oracle is one rank alone that stands for all
// of them, in this very process. On the CPU and on simulated GPUs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/rank_device.h"
#include "support/same_bits.h"
#include "train/trainer.h"

using namespace lockstep;
using test::Alone;
using test::RankDevice;
using test::same_bits;

namespace {

constexpr const char* kMlp =
    "model: {layers: [{linear: 12}, relu, {dropout: 0.3}, {linear: 9}, tanh, {dropout: 0.5}, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 101, shape: [7], classes: 3, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 37, shape: [7], classes: 3, seed: 6}\n";
constexpr const char* kResidual =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}, name: stem}\n"
    "    - batch_norm\n"
    "    - {relu: {}, name: block}\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - {add: block}\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - flatten\n"
    "    - {dropout: 0.25}\n"
    "    - {linear: 4}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 80, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 19, shape: [3, 8, 8], classes: 4, seed: 6}\n";
constexpr const char* kTraining =
    "train: {epochs: 2, batch_size: 3, virtual_ranks: 8, replica_check: 1}\n"
    "optimizer: {kind: sgd, lr: 0.1}\n"
    "log: {every: 1}\n";

// A whole run, and what is left of it.
struct Run {
  std::vector<double> losses;      // per epoch
  std::vector<double> validation;  // likewise
  std::vector<float> weights, statistics;
  int64_t all_reduces = 0, buckets = 0, steps = 0;

  Run(const std::string& text, const std::vector<std::string>& overrides, Backend& backend, Communicator& comm) {
    const Config config = parse_config(text + kTraining, "virtual.yaml", overrides);
    RunLog log("", false);
    Trainer trainer(config, backend, comm, log);
    for (const EpochResult& epoch : trainer.run().epochs) {
      losses.push_back(epoch.train_loss);
      if (epoch.validation) validation.push_back(epoch.validation->loss);
      steps += trainer.plan().epoch().steps();
    }
    ParameterStore& store = trainer.network().store();
    weights = store.memory().downloaded(store.values());
    statistics = store.memory().downloaded(store.buffer_values());
    all_reduces = trainer.synchronizer().all_reduces();
    buckets = static_cast<int64_t>(trainer.synchronizer().buckets());
  }
};

void check_same(const char* text, const std::vector<std::string>& overrides) {
  const MpiEnvironment env;
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  for (const char* kind : {"auto", "mpi"}) {
    RankDevice device(env, kind, "virtual ranks add up in one order");
    Alone alone(device.backend());
    const Run oracle(text, overrides, device.backend(), alone);
    CAPTURE(device.comm().name());
    const Run run(text, overrides, device.backend(), device.comm());
    CHECK(same_bits(oracle.losses, run.losses));
    CHECK(same_bits(oracle.validation, run.validation));
    CHECK(same_bits(oracle.weights, run.weights));
    CHECK(same_bits(oracle.statistics, run.statistics));
    CHECK(run.all_reduces == (env.size() == 1 ? 0 : run.buckets * run.steps));
  }
}

}  // namespace

TEST_CASE("virtual ranks: an MLP with dropout has the same bits on any number of ranks") {
  check_same(kMlp, {"optimizer.momentum=0.9"});
  check_same(kMlp, {"train.accumulate=3", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"});
  check_same(kMlp, {"train.accumulate=2", "distributed.overlap=false", "sampler.uneven=pad"});
  check_same(kMlp, {"distributed.average=ranks", "train.clip_norm=0.5", "optimizer.kind=adamw"});
}

TEST_CASE("virtual ranks: some of them without samples") {
  check_same(kMlp, {"data.train.samples=5", "train.batch_size=1"});
  check_same(kMlp, {"data.train.samples=5", "train.batch_size=1", "train.accumulate=2"});
}

TEST_CASE("virtual ranks: class weights whose sum is known after the forward passes only") {
  check_same(kMlp, {"train.class_weights=[0.2, 1, 3]"});
}

TEST_CASE("virtual ranks: a residual net with batch norm has the same bits on any number of ranks") {
  check_same(kResidual, {"sampler.uneven=drop", "optimizer.momentum=0.9"});
  check_same(kResidual, {"train.accumulate=2", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0",
                         "train.on_nonfinite=skip"});
  check_same(kResidual,
             {"distributed.batch_norm=average", "train.ema=0.9", "log.noise_scale=true", "optimizer.kind=lamb"});
}

TEST_CASE("virtual ranks: augmented images are the same on any number of ranks") {
  check_same(kResidual, {"data.augmentation.crop_padding=2", "data.augmentation.flip=0.5", "sampler.uneven=drop"});
}

TEST_CASE("virtual ranks: every epoch sees other pictures of the same images") {
  const auto backend = test::make_test_backend({.threads = 1});
  Alone alone(*backend);
  std::vector<std::string> still{"model.layers=[flatten, {linear: 4}]", "optimizer.lr=0", "sampler.shuffle=false"};
  const Run plain(kResidual, still, *backend, alone);
  CHECK(plain.losses[0] == plain.losses[1]);
  still.emplace_back("data.augmentation.crop_padding=2");
  const Run drawn(kResidual, still, *backend, alone);
  CHECK(drawn.losses[0] != plain.losses[0]);
  CHECK(drawn.losses[0] != drawn.losses[1]);
  CHECK(drawn.validation == plain.validation);
}

TEST_CASE("virtual ranks draw their own dropout masks") {
  // Without dropout two virtual ranks with equal rows have equal gradients; the masks of one virtual rank depend on its
  // number. Shown by the losses: they change when only the number of virtual ranks that share the batch does.
  const auto backend = test::make_test_backend({.threads = 1});
  Alone alone(*backend);
  const std::vector<std::string> whole{"train.virtual_ranks=1", "train.batch_size=24"};
  const Run with(kMlp, {}, *backend, alone), without(kMlp, whole, *backend, alone);
  CHECK(with.losses[0] != without.losses[0]);
  const std::vector<std::string> none{"model.layers=[{linear: 12}, relu, {linear: 3}]"};
  const Run pieces(kMlp, none, *backend, alone);
  const Run one(kMlp, {none[0], whole[0], whole[1]}, *backend, alone);
  CHECK(std::abs(pieces.losses[0] - one.losses[0]) < 1e-6);
}
