// ranks: 1 2 3 4
// links: train
// Training whose optimizer steps are shared by ranks leaves the same bits as training in which every rank updates
// everything: weights, losses, validations, and every byte of the checkpoints; and goes on from either's checkpoints.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "comm/factory.h"
#include "support/run_folder.h"
#include "support/same_bits.h"
#include "support/shared_folder.h"
#include "train/trainer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kMlp =
    "model: {layers: [{linear: 130}, relu, {dropout: 0.3}, {linear: 70}, tanh, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 29, shape: [7], classes: 3, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 17, shape: [7], classes: 3, seed: 6}\n";
constexpr const char* kConvNet =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - flatten\n"
    "    - {linear: 4}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 40, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 19, shape: [3, 8, 8], classes: 4, seed: 6}\n";
constexpr const char* kTraining =
    "train: {epochs: 2, batch_size: 3, replica_check: 1}\n"
    "optimizer: {kind: sgd, lr: 0.05}\n"
    "log: {every: 1}\n"
    "checkpoint: {every: 2 steps, keep: 1000}\n";

Config config_of(const std::string& text, std::vector<std::string> overrides, const std::string& dir,
                 const std::string& sharded) {
  overrides.push_back("run.dir=" + dir);
  overrides.push_back("distributed.sharded_update=" + sharded);
  return parse_config(text + kTraining, "sharded.yaml", overrides);
}

struct Run {
  std::vector<float> weights;
  bool sharded = false;

  Run(const Config& config, Communicator& comm, const ResumeRequest& resume = {}) {
    const auto backend = make_cpu_backend({.threads = 1});
    RunLog log(config.run.dir, comm.rank() == 0);
    Trainer trainer(config, *backend, comm, log, resume);
    trainer.run();
    sharded = trainer.sharded();
    const ParameterStore& store = std::as_const(trainer.network().store());
    weights.assign(store.values().begin(), store.values().end());
    const GradientSynchronizer& sync = trainer.synchronizer();
    if (sharded) CHECK(sync.all_reduces() == 0);
    comm.barrier();
  }
};

void check_same(const char* model, const std::vector<std::string>& overrides) {
  const MpiEnvironment env;
  if (env.size() == 1) return;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  REQUIRE(comm->name() == "shm");
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  const SharedFolder folder(env);
  const Run plain(config_of(model, overrides, folder / "plain", "off"), *comm);
  const Run sharded(config_of(model, overrides, folder / "sharded", "on"), *comm);
  CHECK(!plain.sharded);
  CHECK(sharded.sharded);
  CHECK(same_bits(plain.weights, sharded.weights));
  if (comm->rank() != 0) return;
  CHECK(told(folder / "plain").events == told(folder / "sharded").events);
  const auto wanted = checkpoint_bytes(folder / "plain"), found = checkpoint_bytes(folder / "sharded");
  CHECK(wanted.size() > 4);
  CHECK(wanted.size() == found.size());
  for (const auto& [name, bytes] : wanted) {
    CAPTURE(name);
    CHECK(found.contains(name));
    if (found.contains(name)) CHECK(found.at(name) == bytes);
  }
}

std::string error_of(const std::vector<std::string>& overrides, const std::string& kind) {
  const MpiEnvironment env;
  const auto comm = make_communicator(kind, env, 60, nullptr);
  const SharedFolder folder(env);
  try {
    const Run run(config_of(kMlp, overrides, folder / "refused", "on"), *comm);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sharded: every optimizer leaves the same bits") {
  for (const char* kind : {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad"})
    check_same(kMlp, {fmt::format("optimizer.kind={}", kind), "optimizer.lr=0.01"});
  check_same(kMlp, {"optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.weight_decay=0.01"});
  check_same(kMlp,
             {"optimizer.kind=adam", "optimizer.amsgrad=true", "optimizer.groups=[{match: ['*.bias'], lr: 0.1}]"});
}

TEST_CASE("sharded: windows, samplers, averages, frozen parameters and 16 bits") {
  check_same(kMlp, {"train.accumulate=2", "train.batch_size=2"});
  check_same(kMlp, {"sampler.uneven=pad", "train.accumulate=3"});
  check_same(kMlp, {"data.train.samples=2", "train.epochs=4"});  // ranks without samples
  check_same(kMlp, {"distributed.average=ranks"});
  check_same(kMlp, {"train.ema=0.9", "optimizer.momentum=0.9"});
  check_same(kMlp, {"optimizer.groups=[{match: ['0.*'], trainable: false}]"});
  check_same(kMlp, {"train.precision=bf16"});
  check_same(kMlp, {"schedule.kind=one_cycle", "schedule.max_lr=0.2", "optimizer.momentum=0.9"});
  check_same(kMlp, {"distributed.overlap=false"});
  check_same(kMlp, {"distributed.bucket_mb=0.001", "distributed.first_bucket_mb=0"});
}

TEST_CASE("sharded: batch norm and virtual ranks") {
  for (const char* policy : {"rank0", "average", "sync"})
    check_same(kConvNet,
               {fmt::format("distributed.batch_norm={}", policy), "sampler.uneven=drop", "sampler.drop_last=true"});
  const MpiEnvironment env;
  if (env.size() != 3) check_same(kConvNet, {"train.virtual_ranks=4", "sampler.uneven=drop", "sampler.drop_last=true"});
}

TEST_CASE("sharded: checkpoints of either kind are gone on with by the other") {
  const MpiEnvironment env;
  if (env.size() == 1) return;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const SharedFolder folder(env);
  const std::vector<std::string> adam{"optimizer.kind=adam", "train.epochs=3"};
  const Run whole(config_of(kMlp, adam, folder / "whole", "off"), *comm);
  const Run sharded(config_of(kMlp, adam, folder / "sharded", "on"), *comm);
  for (const char* from : {"whole", "sharded"})
    for (const char* rest : {"off", "on"}) {
      CAPTURE(from);
      CAPTURE(rest);
      const std::string checkpoint = folder / fmt::format("{}/checkpoints/step-{:09}", from, 4);
      const Run resumed(config_of(kMlp, adam, folder / fmt::format("{}_{}", from, rest), rest), *comm,
                        {.from = checkpoint});
      CHECK(same_bits(whole.weights, resumed.weights));
    }
}

TEST_CASE("sharded: auto shares large updates only, where nothing hinders it") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const SharedFolder folder(env);
  const auto is_sharded = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> all{"train.max_steps=1", "checkpoint.every=never"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return Run(config_of(kMlp, all, folder / "auto", "auto"), *comm).sharded;
  };
  const std::string large = "model.layers=[{linear: 50000}, relu, {linear: 3}]";  // 2.1 MiB
  CHECK(!is_sharded({}));
  CHECK(is_sharded({large}) == (env.size() > 1));
  CHECK(!is_sharded({large, "train.clip_norm=1"}));
  CHECK(!is_sharded({large, "distributed.sync=false", "train.replica_check=0"}));
}

TEST_CASE("sharded: on is refused with its reason") {
  const MpiEnvironment env;
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& reason,
                           const std::string& kind = "auto") {
    const std::string text = error_of(overrides, kind);
    CAPTURE(text);
    if (env.size() == 1) CHECK(text == "");  // nobody to share with
    if (env.size() > 1) CHECK(text.find("distributed.sharded_update: on: ") != std::string::npos);
    if (env.size() > 1) CHECK(text.find(reason) != std::string::npos);
  };
  refused({"train.clip_norm=1"}, "train.clip_norm");
  refused({"train.clip_value=1"}, "train.clip_value");
  refused({"train.precision=fp16"}, "fp16");
  refused({"train.on_nonfinite=skip"}, "train.on_nonfinite");
  refused({"distributed.compress=bf16"}, "distributed.compress");
  refused({"log.noise_scale=true"}, "log.noise_scale");
  refused({"log.watch=[\"gradient:0.weight[0,0]\"]"}, "log.watch");
  refused({"train.class_weights=[1, 2, 3]"}, "targets' weights");
  refused({"optimizer.kind=lamb"}, "lamb");
  refused({}, "communicator mpi", "mpi");
}
