// Recordings on a GPU (CUDA graphs): a backward pass and an update with numbers that change, NCCL's sums on one rank,
// and whole trainings have the bits of what is asked for piece by piece.
#include <doctest/doctest.h>

#include <cstdio>

#include "backend/factory.h"
#include "comm/nccl_facts.h"
#include "gpu/device.h"
#include "support/training_run.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kNet =
    "model:\n"
    "  layers:\n"
    "    - {conv2d: {out: 16, kernel: 3, padding: 1}}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - {max_pool2d: 2}\n"
    "    - flatten\n"
    "    - {linear: 32}\n"
    "    - relu\n"
    "    - {dropout: 0.25}\n"
    "    - {linear: 4}\n"
    "data: {train: {kind: synthetic, name: random, samples: 100, shape: [3, 8, 8], classes: 4, seed: 5}}\n"
    "train: {epochs: 4, batch_size: 8}\n"
    "optimizer: {kind: adamw, lr: 0.01}\n"
    "schedule: {kind: cosine}\n"
    "log: {every: 3}\n";

std::string digest(const std::vector<std::string>& more) {
  std::vector<std::string> overrides{"device.kind=cuda"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  const TrainingRun run = train_text(kNet, 1, overrides, 200, GPU_PROGRAM);
  REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
  return run.of("end").at(0)["model_sha256"].get<std::string>();
}

}  // namespace

TEST_CASE("a recorded product and update on the GPU are those that are asked for one by one") {
  constexpr int64_t rows = 24, in = 40, out = 16;
  const auto backend = make_cuda_backend({.index = 0});
  Device device(*backend);
  const auto plan = backend->plan_linear({.input = {Shape{rows, in}}, .out_features = out});
  const float *x = device.put(normal(rows * in, 1)), *dy = device.put(normal(rows * out, 2));
  void* workspace = device.make(plan->workspace_bytes());
  const auto weights = [&](bool recorded) -> Floats {
    float* w = device.put_weights(normal(in * out, 3), plan->weight_format());
    float* dw = device.zeros(in * out);
    float *momentum = device.zeros(in * out), *db = device.zeros(out);
    const auto update = [&](int step) {
      backend->optimizer_ops().sgd({.lr = 0.1 / (1 + step), .momentum = 0.9, .first_step = step == 0}, in * out, w, dw,
                                   momentum);
    };
    const auto work = [&](int step) {
      plan->backward_weights(x, dy, dw, db, true, workspace);
      update(step);
    };
    std::unique_ptr<Recording> recording;
    for (int step = 0; step < 5; ++step) {
      if (!recorded || step == 0) {
        work(step);
        continue;
      }
      Recorder& recorder = *backend->recorder();
      if (recording == nullptr) {
        recorder.begin();
        work(step);
        recording = recorder.end();
      } else {
        recorder.begin_numbers();
        update(step);
        recorder.end_numbers();
      }
      recorder.start(*recording, 0);
    }
    return device.get(w, in * out);
  };
  CHECK(weights(true) == weights(false));
}

TEST_CASE("NCCL's sums are recorded on one rank") {
  if (nccl_version().empty()) return static_cast<void>(std::puts("SKIPPED: this build has no NCCL"));
  const MpiEnvironment env;
  const auto backend = make_cuda_backend({.index = 0});
  const auto communicator = make_nccl_communicator(env, *backend->gpu(), 60);
  constexpr size_t n = 1000;
  const Buffer memory = communicator->allocate(n * sizeof(float));
  const std::span<float> values = memory.as<float>();
  const std::vector<float> x = normal(n, 1);
  backend->memory().upload(values, x);
  communicator->all_reduce_sum(values);  // connects
  const auto work = [&] {
    backend->optimizer_ops().scale(n, values.data(), 2);
    communicator->all_reduce_sum(values.first(n / 2));
    communicator->all_reduce_sum(values.last(n / 2));
    backend->optimizer_ops().scale(n, values.data(), 0.25F);
  };
  work();
  backend->recorder()->begin();
  work();
  const auto recording = backend->recorder()->end();
  for (int i = 0; i < 3; ++i) backend->recorder()->start(*recording, 0);
  std::vector<float> expected = x;
  for (float& value : expected) value *= 0.0625F;
  CHECK(backend->memory().downloaded(values) == expected);
}

TEST_CASE("a training whose steps are recorded ends with the bits of others") {
  for (const char* precision : {"train.precision=fp32", "train.precision=bf16"}) {
    for (const char* accumulate : {"train.accumulate=1", "train.accumulate=2"})
      CHECK(digest({precision, accumulate, "device.cuda_graph=on"}) ==
            digest({precision, accumulate, "device.cuda_graph=off"}));
  }
}
