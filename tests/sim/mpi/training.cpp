// ranks: 1 2 4
// links: train
// Training on simulated GPUs through the trainer that the CPU has: the same losses and weights to rounding, the same
// bits under every order of the streams and after a resume.
#include <doctest/doctest.h>

#include "comm/run_agreed.h"
#include "sim/training.h"

using namespace lockstep;
using test::difference;
using test::GpuRun;
using test::kMlp;
using test::Overrides;
using test::SharedFolder;
using test::with;

namespace {

// Every tensor is computed from sums of a few numbers whose order differs: differences of fp32's rounding grow over the
// steps, but not beyond this. In 16 bits a rounding may fall the other way.
constexpr double kFp32 = 2e-5, kHalf = 2e-2;

void compare(const std::string& yaml, const Overrides& overrides, double tolerance = kFp32) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  sim::reset({});
  const GpuRun cpu(env, yaml, with(overrides, {"device.kind=cpu", "distributed.backend=auto"}), folder / "cpu");
  const GpuRun gpu(env, yaml, with({"device.kind=cuda"}, overrides), folder / "gpu");
  CHECK(sim::last_misuse() == "");
  CHECK(gpu.steps == cpu.steps);
  CHECK(difference(gpu.losses, cpu.losses) < tolerance);
  CHECK(difference(gpu.validation, cpu.validation) < tolerance);
  CHECK(difference(gpu.weights, cpu.weights) < tolerance);
  CHECK(difference(gpu.optimizer, cpu.optimizer) < tolerance);
}

}  // namespace

TEST_CASE("training on GPUs follows the CPU with every optimizer") {
  for (const char* kind : {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad", "lars", "lamb"})
    compare(kMlp, {fmt::format("optimizer.kind={}", kind), "optimizer.lr=0.01", "train.epochs=1"});
  compare(kMlp, {"optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.weight_decay=0.01"});
}

TEST_CASE("training on GPUs follows the CPU where linear layers share their backward pass") {
  const std::string layers = "model.layers=[{linear: 12}, relu, {linear: 9}, relu, {linear: 3}]";
  compare(kMlp, {layers, "train.accumulate=3", "train.batch_size=2", "optimizer.momentum=0.9"});
  compare(kMlp, {layers, "train.precision=bf16", "train.accumulate=2"}, kHalf);
  compare(kMlp, {layers, "train.precision=fp16", "train.loss_scale.init=64"}, kHalf);
  compare(kMlp, {layers, "optimizer.groups=[{match: [0.weight, 2.bias], trainable: false}]", "train.clip_norm=0.5"});
}

TEST_CASE("training on GPUs follows the CPU in windows and with uneven shards") {
  compare(kMlp, {"train.accumulate=3", "train.batch_size=2", "data.prefetch=2"});
  compare(kMlp, {"train.accumulate=2", "train.batch_size=5", "sampler.uneven=exact"});
  compare(kMlp, {"train.batch_size=20"});  // ranks without samples in the last step
  compare(kMlp, {"data.train.seed_per_rank=true", "train.accumulate=2", "train.batch_size=5"});
}

TEST_CASE("training on GPUs follows the CPU with what else a step may hold") {
  compare(kMlp, {"train.ema=0.9", "eval.every=3 steps", "train.clip_norm=0.5"});
  compare(kMlp, {"train.clip_norm=0.05", "train.clip_norm_type=inf", "optimizer.kind=lars", "optimizer.momentum=0.9"});
  compare(kMlp, {"train.clip_value=0.01", "train.on_nonfinite=skip", "train.replica_check=2"});
  compare(kMlp,
          {"log.noise_scale=true", "log.per_rank=true", "log.watch=[\"gradient:0.weight[0,0]\",\"checksum:0.bias\"]"});
  compare(kMlp, {"train.class_weights=[1,2,0.5]"});
  compare(kMlp, {"train.class_weights=[1,2,0.5]", "distributed.average=ranks"});
  compare(kMlp, {"train.reduction=sum", "optimizer.lr=0.01"});
  compare(kMlp, {"distributed.first_bucket_mb=0", "distributed.bucket_mb=0"});
  compare(kMlp, {"distributed.overlap=false"});
}

TEST_CASE("training on GPUs follows the CPU by way of the host too") {
  compare(kMlp, {"distributed.backend=mpi"});
  compare(kMlp, {"distributed.first_bucket_mb=0", "distributed.bucket_mb=0", "distributed.backend=mpi"});
  compare(kMlp, {"distributed.compress=bf16"}, kHalf);
}

TEST_CASE("training on GPUs follows the CPU in 16 bits") {
  compare(kMlp, {"train.precision=bf16"}, kHalf);
  compare(kMlp, {"train.precision=fp16", "train.loss_scale.growth_interval=3", "train.loss_scale.init=64"}, kHalf);
}

TEST_CASE("training on GPUs has the same bits under every order of the streams") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  for (const char* backend : {"nccl", "mpi"}) {
    std::string digest;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(backend);
      CAPTURE(seed);
      sim::reset({.seed = seed + 100 * static_cast<uint64_t>(env.rank())});
      const GpuRun run(env, kMlp,
                       {"device.kind=cuda", fmt::format("distributed.backend={}", backend), "train.accumulate=2",
                        "train.clip_norm=1", "optimizer.kind=lamb", "distributed.first_bucket_mb=0",
                        "distributed.bucket_mb=0", "data.prefetch=2", "train.epochs=1"},
                       folder / fmt::format("{}{}", backend, seed));
      if (digest.empty()) digest = run.digest;
      CHECK(run.digest == digest);
      CHECK(sim::last_misuse() == "");
    }
  }
}

// Deleted on one rank, another one in each run; seeds until its absence shows.
TEST_CASE("a deleted event wait in a training is caught") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides overrides = {"device.kind=cuda",
                               "train.accumulate=4",
                               "train.batch_size=2",
                               "train.max_steps=3",
                               "distributed.first_bucket_mb=0",
                               "distributed.bucket_mb=0",
                               "train.replica_check=1",
                               "distributed.timeout=10"};
  const auto digest_of = [&](uint64_t seed, int ignored) -> std::string {
    sim::reset({.seed = seed});
    if (env.rank() == env.size() - 1 && ignored >= 0) sim::ignore_call("cudaStreamWaitEvent", ignored);
    try {
      return GpuRun(env, kMlp, overrides, folder / "run").digest;
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  const std::string expected = digest_of(1, -1);
  int waits = sim::calls()["cudaStreamWaitEvent"];
  MPI_Bcast(&waits, 1, MPI_INT, 0, env.world());
  REQUIRE(waits > 20);
  int tried = 0, caught = 0;
  for (int wait = 0; wait < waits; wait += std::max(1, waits / 13), ++tried) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 4 && wrong == 0; ++seed) {
      wrong = digest_of(seed, wait) == expected ? 0 : 1;
      MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, env.world());
    }
    caught += wrong;
  }
  CAPTURE(tried);
  CHECK(caught >= 2);  // many wait for what is long done, and cannot be missed
}

TEST_CASE("training on GPUs goes on from a checkpoint to the same bits") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  for (const Overrides& overrides :
       {Overrides{"optimizer.kind=adam", "train.ema=0.9"}, Overrides{"distributed.backend=mpi", "train.accumulate=2"},
        Overrides{"train.precision=fp16", "train.loss_scale.growth_interval=3", "train.loss_scale.init=64"}}) {
    sim::reset({});
    const Overrides all = with({"device.kind=cuda", "checkpoint.every=1", "checkpoint.keep=1000"}, overrides);
    const std::string name = overrides.front();
    CAPTURE(name);
    const GpuRun whole(env, kMlp, all, folder / name);
    REQUIRE(whole.steps >= 4);
    for (int64_t step = 1; step < whole.steps; step += 3) {
      CAPTURE(step);
      const GpuRun rest(env, kMlp, with(all, {"checkpoint.every=never"}), folder / fmt::format("{} {}", name, step),
                        {.from = fmt::format("{}/checkpoints/step-{:09}", folder / name, step)});
      CHECK(rest.digest == whole.digest);
      CHECK(rest.optimizer == whole.optimizer);
    }
  }
}

TEST_CASE("a checkpoint of the CPU goes on on GPUs and back") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({});
  const auto start = [&](const std::string& name) {
    return fmt::format("{}/checkpoints/step-000000004", folder / name);
  };
  const Overrides save = {"checkpoint.every=4 steps", "checkpoint.keep=1000", "optimizer.kind=adam",
                          "optimizer.lr=0.01"};
  const GpuRun cpu(env, kMlp, with(save, {"device.kind=cpu"}), folder / "cpu");
  const GpuRun gpu(env, kMlp, with(save, {"device.kind=cuda"}), folder / "gpu");
  const Overrides rest = with(save, {"checkpoint.every=never"});
  const GpuRun on_gpu(env, kMlp, with(rest, {"device.kind=cuda"}), folder / "on_gpu", {.from = start("cpu")});
  const GpuRun on_cpu(env, kMlp, with(rest, {"device.kind=cpu"}), folder / "on_cpu", {.from = start("gpu")});
  CHECK(difference(on_gpu.weights, cpu.weights) < kFp32);
  CHECK(difference(on_cpu.weights, cpu.weights) < kFp32);
}

TEST_CASE("what the run takes is what ranks and configuration allow") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const auto taken = [&](const Overrides& overrides) {
    return GpuRun(env, kMlp, with({"train.max_steps=2"}, overrides), folder / "run").communicator;
  };
  sim::reset({.gpus = env.size()});
  CHECK(taken({"device.kind=auto"}) == "nccl");
  CHECK(taken({"device.kind=cuda", "train.virtual_ranks=4"}).starts_with("staged "));
  CHECK_THROWS_WITH_AS(taken({"device.kind=cuda", "train.virtual_ranks=4", "distributed.backend=nccl"}),
                       "distributed.backend nccl: train.virtual_ranks adds up in one order for any number of ranks, "
                       "which NCCL does not; write distributed.backend: auto",
                       PoliteError);
  sim::reset({.gpus = 0});
  CHECK(taken({"device.kind=auto"}) == (env.size() == 1 ? "serial" : "shm"));
  if (env.size() == 1) return;
  sim::reset({.gpus = 1});
  CHECK(taken({"device.kind=auto"}) == "shm");
  CHECK(taken({"device.kind=cuda", "device.oversubscribe=true"}) == "staged shm");
}
