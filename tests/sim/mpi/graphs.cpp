// ranks: 1 2 4
// links: train
// Steps recorded as CUDA graphs: the bits of steps that are not, whatever changes from one step to the next.
#include <doctest/doctest.h>

#include <cstdio>

#include "core/error.h"
#include "sim/training.h"

using namespace lockstep;
using test::GpuRun;
using test::kMlp;
using test::Overrides;
using test::SharedFolder;
using test::with;

namespace {

void skip() { std::puts("SKIPPED: needs another rank"); }

// Epochs for each kind of micro-step to come a third time.
const Overrides kRun = {"device.kind=cuda", "train.epochs=5", "data.prefetch=2"};

void compare(const std::string& yaml, const Overrides& overrides, int64_t least = 4) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  sim::reset({.seed = static_cast<uint64_t>(3 + env.rank())});
  const GpuRun plain(env, yaml, with(with(kRun, {"device.cuda_graph=off"}), overrides), folder / "off");
  CHECK(plain.recorded == 0);
  CHECK(sim::calls()["cudaGraphLaunch"] == 0);
  const GpuRun recorded(env, yaml, with(with(kRun, {"device.cuda_graph=on"}), overrides), folder / "on");
  CHECK(sim::last_misuse() == "");
  CHECK(recorded.recorded >= least);
  CHECK(sim::calls()["cudaGraphLaunch"] == recorded.recorded);
  CHECK(recorded.steps == plain.steps);
  CHECK(recorded.losses == plain.losses);
  CHECK(recorded.validation == plain.validation);
  CHECK(recorded.digest == plain.digest);
  CHECK(recorded.optimizer == plain.optimizer);
}

}  // namespace

TEST_CASE("recorded steps have the bits of others with every optimizer that can be recorded") {
  compare(kMlp, {});
  compare(kMlp, {"optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.weight_decay=0.01"});
  for (const char* kind : {"adam", "adamw", "adadelta", "rmsprop", "adagrad"})
    compare(kMlp, {fmt::format("optimizer.kind={}", kind), "optimizer.lr=0.01"});
}

TEST_CASE("recorded steps follow schedules of the learning rate and of the momentum") {
  compare(kMlp, {"schedule.kind=cosine"});
  compare(kMlp, {"optimizer.kind=adam", "optimizer.lr=0.01", "schedule.kind=one_cycle", "schedule.max_lr=0.05"});
  compare(kMlp, {"optimizer.momentum=0.9", "schedule.kind=one_cycle", "schedule.max_lr=0.2"});
}

TEST_CASE("recorded steps have the bits of others in windows and with uneven shards") {
  compare(kMlp, {"train.accumulate=3", "train.batch_size=2"});
  compare(kMlp, {"train.accumulate=2", "train.batch_size=2", "train.epochs=6", "sampler.uneven=exact"});
  compare(kMlp, {"train.batch_size=10", "train.epochs=12"});  // ranks without samples in the last step
}

TEST_CASE("recorded steps have the bits of others with what else a step may hold") {
  compare(kMlp, {"train.ema=0.9", "eval.every=3 steps", "train.clip_value=0.01", "train.replica_check=2"});
  compare(kMlp, {"log.every=3", "checkpoint.every=5 steps"});
  compare(kMlp, {"log.every=1000", "train.ema=0.99"});
  compare(kMlp, {"log.per_rank=true", "log.indices=true"});
  compare(kMlp, {"train.clip_norm=0.5", "optimizer.momentum=0.9"});
  compare(kMlp, {"train.clip_norm=0.05", "train.clip_norm_type=inf", "train.accumulate=2", "train.batch_size=2"});
  const std::string layers = "model.layers=[{linear: 12}, relu, {linear: 9}, relu, {linear: 3}]";
  compare(kMlp, {layers, "train.accumulate=3", "train.batch_size=2"});
  compare(kMlp, {layers, "train.precision=bf16"});
  compare(kMlp, {"train.precision=bf16"});
  compare(kMlp, {"distributed.first_bucket_mb=0", "distributed.bucket_mb=0"});
  compare(kMlp, {"distributed.overlap=false", "distributed.average=ranks"});
}

TEST_CASE("what can not be recorded is said and asked for in vain") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({});
  const auto taken = [&](const Overrides& overrides) {
    return GpuRun(env, kMlp, with({"device.kind=cuda", "train.max_steps=12"}, overrides), folder / "run").recorded;
  };
  const std::string refusal = "device.cuda_graph: on: a step can't be recorded: ",
                    end = "; cuda_graph: auto goes on without";
  const Overrides fp16 = {"train.precision=fp16"};
  CHECK(taken(fp16) == 0);
  CHECK_THROWS_WITH_AS(
      taken(with(fp16, {"device.cuda_graph=on"})),
      (refusal + "train.precision: fp16 looks for overflow before it decides on an update" + end).c_str(), Error);
  CHECK_THROWS_WITH_AS(taken({"device.kind=cpu", "distributed.backend=auto", "device.cuda_graph=on"}),
                       (refusal + "this run computes on no GPU" + end).c_str(), Error);
  if (env.size() == 1) return;
  CHECK(taken({"distributed.backend=mpi"}) == 0);
}

TEST_CASE("a rank that stops answering is told of in a recorded step") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({});
  if (env.size() == 1) return skip();
  const Config config =
      parse_config(kMlp, "silent.yaml",
                   {"run.dir=" + (folder / "run"), "device.kind=cuda", "distributed.timeout=2", "train.epochs=9"});
  const Resources resources = claim_resources(config, env);
  RunLog log(folder / "run", env.rank() == 0);
  Trainer trainer(config, *resources.backend, *resources.communicator, log);
  std::string error;
  try {
    for (int64_t epoch = 0; epoch < 9; ++epoch) {
      trainer.begin_epoch(epoch);
      for (int64_t step = 0; step < trainer.plan().epoch().steps(); ++step) {
        if (epoch == 8 && env.rank() == 1) sim::go_silent();
        trainer.train_step(step);
      }
    }
    resources.backend->synchronize();
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  CAPTURE(error);
  CHECK(trainer.recordings()->starts() > 4);
  CHECK((error.find("a recorded step with") != std::string::npos || error.find("stopped") != std::string::npos));
  if (env.rank() == 1) return;
  CHECK(error.find("(step ") != std::string::npos);
}

TEST_CASE("a loss that is not finite is told of with its own step and rows") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const auto told = [&](const char* graph, const char* every) -> std::string {
    sim::reset({});
    try {
      GpuRun(env, kMlp, with(kRun, {"optimizer.lr=1000", "optimizer.weight_decay=1", graph, every}), folder / "run");
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  const std::string expected = told("device.cuda_graph=off", "log.every=1");
  CAPTURE(expected);
  CHECK(expected.find("the loss is not finite on rank") != std::string::npos);
  CHECK(std::stoi(expected.substr(expected.find(' ') + 1)) > 5);  // by then steps are recorded
  CHECK(told("device.cuda_graph=on", "log.every=1") == expected);
  CHECK(told("device.cuda_graph=on", "log.every=1000") == told("device.cuda_graph=off", "log.every=1000"));
}
