// ranks: 1 2 3
// links: train
// A run that is taken up from any of its checkpoints ends as if it had never been broken: the same weights, buffers,
// average, optimizer state, losses, rates and validations, to the bit. Every step of a run of two epochs is tried.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "support/run_folder.h"
#include "support/same_bits.h"
#include "support/shared_folder.h"
#include "train/trainer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kMlp =
    "model: {layers: [{linear: 12}, relu, {dropout: 0.3}, {linear: 9}, tanh, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 47, shape: [7], classes: 3, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 37, shape: [7], classes: 3, seed: 6}\n";
constexpr const char* kConvNet =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - flatten\n"
    "    - {dropout: 0.25}\n"
    "    - {linear: 4}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 40, shape: [3, 8, 8], classes: 4, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 19, shape: [3, 8, 8], classes: 4, seed: 6}\n";
constexpr const char* kTraining =
    "train: {epochs: 2, batch_size: 3}\n"
    "optimizer: {kind: sgd, lr: 0.1}\n"
    "log: {every: 1}\n"
    "checkpoint: {every: 1, keep: 1000, background: false}\n";

// What a run leaves in memory and in its log (of steps and validations, without times).
struct Run {
  std::vector<float> weights, buffers, optimizer;
  std::vector<std::string> events;  // on rank 0
  int64_t steps = 0;

  Run(const std::string& text, std::vector<std::string> overrides, const std::string& dir, Communicator& comm,
      const ResumeRequest& resume = {}) {
    overrides.push_back("run.dir=" + dir);
    const Config config = parse_config(text + kTraining, "resume.yaml", overrides);
    const auto backend = make_cpu_backend({.threads = 1});
    RunLog log(dir, comm.rank() == 0);
    Trainer trainer(config, *backend, comm, log, resume);
    steps = trainer.run().steps;
    const ParameterStore& store = trainer.network().store();
    weights.assign(store.values().begin(), store.values().end());
    buffers.assign(store.buffer_values().begin(), store.buffer_values().end());
    for (const StateArray& array : trainer.optimizer().state())
      optimizer.insert(optimizer.end(), array.values.begin(), array.values.end());
    if (comm.rank() == 0) events = told(dir).events;
    comm.barrier();
  }
};

// The events of the steps from `first` on.
std::vector<std::string> from_step(const std::vector<std::string>& events, int64_t first) {
  std::vector<std::string> rest;
  for (const std::string& event : events) {
    if (nlohmann::json::parse(event)["step"].get<int64_t>() >= first) rest.push_back(event);
  }
  return rest;
}

std::string checkpoint(const std::string& dir, int64_t step) {
  return fmt::format("{}/checkpoints/step-{:09}", dir, step);
}

void check_resumes(const char* model, const std::vector<std::string>& overrides) {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const SharedFolder folder(env);
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  const Run whole(model, overrides, folder / "whole", *comm);
  REQUIRE(whole.steps > 4);
  for (int64_t step = 1; step < whole.steps; ++step) {
    CAPTURE(step);
    std::vector<std::string> rest = overrides;
    rest.emplace_back("checkpoint.every=never");
    const Run resumed(model, rest, folder / fmt::format("rest{}", step), *comm,
                      {.from = checkpoint(folder / "whole", step)});
    CHECK(resumed.steps == whole.steps);
    CHECK(same_bits(whole.weights, resumed.weights));
    CHECK(same_bits(whole.buffers, resumed.buffers));
    CHECK(same_bits(whole.optimizer, resumed.optimizer));
    CHECK(from_step(whole.events, step) == from_step(resumed.events, step));
  }
}

}  // namespace

TEST_CASE("resume: every optimizer goes on to the same bits") {
  for (const char* kind : {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad", "lars", "lamb"})
    check_resumes(kMlp, {fmt::format("optimizer.kind={}", kind), "optimizer.lr=0.01"});
  check_resumes(kMlp, {"optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.weight_decay=0.01"});
  check_resumes(kMlp, {"optimizer.kind=adam", "optimizer.amsgrad=true"});
  check_resumes(kMlp, {"optimizer.kind=rmsprop", "optimizer.centered=true", "optimizer.momentum=0.9"});
}

TEST_CASE("resume: every schedule goes on with the same rates") {
  check_resumes(kMlp, {"schedule.kind=cosine", "schedule.warmup=6"});
  check_resumes(kMlp, {"schedule.kind=one_cycle", "schedule.max_lr=0.2", "optimizer.momentum=0.9"});
  check_resumes(kMlp, {"schedule.kind=step", "schedule.step_size=3"});
  check_resumes(kMlp, {"schedule.kind=step", "schedule.step_size=1", "schedule.per=epoch"});
  check_resumes(kMlp, {"schedule.kind=plateau", "schedule.patience=0", "schedule.factor=0.5", "eval.every=2 steps"});
  check_resumes(kMlp, {"schedule.kind=plateau", "schedule.patience=0", "schedule.factor=0.5",
                       "schedule.metric=train.loss", "train.epochs=4"});
}

TEST_CASE("resume: windows and samplers go on where they were") {
  check_resumes(kMlp, {"train.accumulate=2", "train.batch_size=2", "data.prefetch=2"});
  check_resumes(kMlp, {"train.accumulate=3", "train.batch_size=2", "sampler.uneven=pad", "train.epochs=4"});
  check_resumes(kMlp, {"sampler.uneven=drop", "sampler.drop_last=true", "train.epochs=3"});
  check_resumes(kMlp, {"sampler.generator=global", "train.clip_norm=0.5"});
  check_resumes(kMlp, {"train.max_steps=7"});
  check_resumes(kMlp, {"data.train.seed_per_rank=true", "train.accumulate=2", "train.batch_size=5"});
}

TEST_CASE("resume: averages and scales and early stopping are remembered") {
  check_resumes(kMlp, {"train.ema=0.9", "eval.every=3 steps"});
  check_resumes(kMlp, {"train.precision=fp16", "train.loss_scale.growth_interval=3", "train.loss_scale.init=64"});
  check_resumes(kMlp, {"log.noise_scale=true"});
  check_resumes(kMlp, {"eval.every=1 steps", "train.early_stopping.patience=5", "train.epochs=6"});
}

TEST_CASE("resume: batch norm's running statistics") {
  for (const char* policy : {"rank0", "average", "sync"})
    check_resumes(kConvNet, {fmt::format("distributed.batch_norm={}", policy), "sampler.uneven=drop",
                             "sampler.drop_last=true", "train.epochs=3"});
}

TEST_CASE("resume: images are augmented as they would have been") {
  check_resumes(kConvNet, {"data.augmentation.crop_padding=2", "data.augmentation.flip=0.5"});
  check_resumes(kConvNet, {"data.augmentation.flip=0.5", "data.train.seed_per_rank=true", "data.prefetch=2"});
}

TEST_CASE("resume: a layer that draws from PyTorch's generator") {
  check_resumes(
      "model: {layers: [{linear: 12}, {dropout: {p: 0.3, torch_stream: true}}, {linear: 3}]}\n"
      "data: {train: {kind: synthetic, name: random, samples: 47, shape: [7], classes: 3, seed: 5}}\n",
      {});
}
