// ranks: 1 2 4
// links: train
// Training sets that GPUs keep: the bits of a run whose batches are copied, for fewer bytes that are.
#include <doctest/doctest.h>

#include "comm/run_agreed.h"
#include "sim/training.h"

using namespace lockstep;
using test::GpuRun;
using test::kMlp;
using test::Overrides;
using test::SharedFolder;
using test::with;

namespace {

const std::string kConvNet =
    "model: {layers: [{conv2d: {out: 4, kernel: 3}}, relu, flatten, {dropout: 0.2}, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: npy, x: images.npy, y: labels.npy, normalize: {mean: 0.4, std: 0.3}}\n"
    "  augmentation: {crop_padding: 2, flip: 0.5}\n"
    "train: {epochs: 3, batch_size: 4}\n"
    "optimizer: {kind: sgd, lr: 0.1}\n";
const std::string kRegression =
    "model: {layers: [{linear: 5}, tanh, {linear: 2}]}\n"
    "data: {train: {kind: synthetic, name: normal_regression, samples: 29, shape: [40], target_width: 2, seed: 3}}\n"
    "train: {epochs: 3, batch_size: 3, loss: mse}\n"
    "optimizer: {kind: sgd, lr: 0.05}\n";

void write_npy(const std::string& path, const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::ofstream(path, std::ios::binary) << "\x93NUMPY\x01" << '\0' << 'v' << '\0' << header << data;
}

// 37 images of bytes in three classes.
Overrides image_files(const MpiEnvironment& env, const SharedFolder& folder) {
  const std::string x = folder / "images.npy", y = folder / "labels.npy";
  if (env.rank() == 0) {
    std::filesystem::create_directories(folder / "");
    std::string pixels, labels;
    for (int i = 0; i < 37 * 2 * 6 * 5; ++i) pixels += static_cast<char>(i * 37 % 251);
    for (int i = 0; i < 37; ++i) labels += static_cast<char>(i * 5 % 3);
    write_npy(x, "|u1", "(37, 2, 6, 5)", pixels);
    write_npy(y, "|u1", "(37,)", labels);
  }
  MPI_Barrier(env.world());
  return {"data.train.x=" + x, "data.train.y=" + y};
}

// Both ways, told and found.
void compare(const MpiEnvironment& env, const SharedFolder& folder, const std::string& yaml, Overrides overrides) {
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  overrides.insert(overrides.begin(), "device.kind=cuda");
  sim::reset({});
  const GpuRun copied(env, yaml, with(overrides, {"device.data=off"}), folder / "copied");
  const uint64_t copied_bytes = sim::bytes_to_device();
  for (const char* data : {"on", "auto"}) {
    sim::reset({.seed = 7});
    const GpuRun kept(env, yaml, with(overrides, {std::string("device.data=") + data}), folder / "kept");
    const uint64_t kept_bytes = sim::bytes_to_device();
    CHECK(sim::last_misuse() == "");
    CHECK(kept.steps == copied.steps);
    CHECK(kept.losses == copied.losses);
    CHECK(kept.validation == copied.validation);
    CHECK(kept.digest == copied.digest);
    CHECK(kept_bytes < copied_bytes);
  }
}

std::string refusal(const MpiEnvironment& env, const SharedFolder& folder, const Overrides& overrides) {
  try {
    const GpuRun run(env, kMlp, with({"train.max_steps=1"}, overrides), folder / "refused");
  } catch (const PoliteError& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("a training set that the GPUs keep gives the bits of one that is copied") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides long_runs = {"train.epochs=40", "eval.every=never", "data.train.shape=[200]"};
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=40"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=12", "train.accumulate=3", "train.batch_size=2"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=12", "train.batch_size=20", "data.prefetch=2"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=20", "data.train.first=5", "data.train.count=17"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=20", "train.virtual_ranks=4"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=20", "data.train.seed_per_rank=true"}));
  compare(env, folder, kMlp, with(long_runs, {"train.max_steps=20", "sampler.generator=global", "log.indices=true"}));
  compare(env, folder, kRegression, {"train.epochs=20"});
}

TEST_CASE("images that the GPUs keep as bytes and augment give the bits of the host's") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides files = image_files(env, folder);
  compare(env, folder, kConvNet, files);
  compare(env, folder, kConvNet, with(files, {"train.accumulate=2", "train.batch_size=3", "data.prefetch=3"}));
  compare(env, folder, kConvNet, with(files, {"train.precision=bf16", "data.augmentation.flip=0"}));
  compare(env, folder, kConvNet, with(files, {"distributed.backend=mpi", "data.augmentation.crop_padding=0"}));
}

TEST_CASE("a run with a kept training set goes on in the midst of an epoch either way") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides all = with(image_files(env, folder), {"device.kind=cuda", "checkpoint.every=1 steps",
                                                        "checkpoint.keep=1000", "train.batch_size=2"});
  sim::reset({});
  const GpuRun whole(env, kConvNet, with(all, {"device.data=on"}), folder / "whole");
  REQUIRE(whole.steps >= 12);
  for (const auto& [step, data] : {std::pair{1, "on"}, {3, "off"}, {7, "on"}, {11, "on"}}) {
    CAPTURE(step);
    const GpuRun rest(env, kConvNet, with(all, {"checkpoint.every=never", std::string("device.data=") + data}),
                      folder / fmt::format("from {}", step),
                      {.from = fmt::format("{}/checkpoints/step-{:09}", folder / "whole", step)});
    CHECK(rest.digest == whole.digest);
  }
}

TEST_CASE("a kept training set gives the same bits under every order of the streams") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides all = with(image_files(env, folder), {"device.kind=cuda", "device.data=on", "train.accumulate=2",
                                                        "train.epochs=1", "train.batch_size=2"});
  std::string digest;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    sim::reset({.seed = seed + 100 * static_cast<uint64_t>(env.rank())});
    const GpuRun run(env, kConvNet, all, folder / fmt::format("seed {}", seed));
    if (digest.empty()) digest = run.digest;
    CHECK(run.digest == digest);
    CHECK(sim::last_misuse() == "");
  }
}

// On one rank, the waits of the copy stream and of the computation for it among all; seeds until its absence shows.
TEST_CASE("a deleted event wait in a training with a kept training set is caught") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const Overrides all = with(image_files(env, folder),
                             {"device.kind=cuda", "device.data=on", "device.cuda_graph=off", "train.accumulate=6",
                              "train.batch_size=1", "train.max_steps=1", "distributed.timeout=5"});
  const auto outcome = [&](uint64_t seed, int ignored) -> std::string {
    sim::reset({.seed = seed});
    if (env.rank() == env.size() - 1 && ignored >= 0) sim::ignore_call("cudaStreamWaitEvent", ignored);
    try {
      return GpuRun(env, kConvNet, all, folder / "run").digest;
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  const std::string expected = outcome(1, -1);
  int waits = sim::calls()["cudaStreamWaitEvent"];
  MPI_Bcast(&waits, 1, MPI_INT, 0, env.world());
  REQUIRE(waits >= 12);  // two of each of the six batches
  int caught = 0;
  for (int wait = 4; wait < 12; ++wait) {  // the first two batches find their places free
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 8 && wrong == 0; ++seed) {
      wrong = outcome(seed, wait) == expected ? 0 : 1;
      MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, env.world());
    }
    caught += wrong;
  }
  CHECK(caught >= 3);  // of the four of the computation; tests/sim/keeping_feed.cpp has the others
}

TEST_CASE("a run says where its training set lies") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  const auto said = [&](const Overrides& overrides) {
    const GpuRun run(env, kMlp, with({"device.kind=cuda", "train.max_steps=1", "eval.every=never"}, overrides),
                     folder / "said");
    std::ifstream file(folder / "said" + "/metrics.jsonl");
    std::string line;
    std::getline(file, line);
    return nlohmann::json::parse(line)["environment"].value("training set", "");
  };
  const std::string where = env.size() > 1 ? "every rank's GPU" : "the GPU";
  sim::reset({});
  CHECK(said({}).starts_with("training set: kept on " + where + ", 1.65 KiB as stored, of "));
  CHECK(said({"device.data=off"}) == "training set: on the host, batches are copied (device.data: off)");
  const Overrides large = {"data.train.samples=40000", "data.train.shape=[100]"};  // 16 MB
  sim::reset({.memory = size_t{20} << 20});
  const std::string text = said(large);
  CHECK(text.starts_with("training set: on the host, batches are copied: it takes 15.6 MiB as stored, more than 1/4"));
  CHECK(said(with(large, {"device.data_mb=10"})).find("more than device.data_mb: 10") != std::string::npos);
  CHECK(said({"device.kind=cpu"}) == "");
}

TEST_CASE("a training set that can't be kept is refused where it must be") {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({});
  CHECK(refusal(env, folder, {"device.kind=cpu", "device.data=on"}) ==
        "device.data on: the run is on a CPU, which reads the training set where it is: write device.data: auto, or "
        "device.kind: cuda");
  const Overrides large = {"device.kind=cuda", "device.data=on", "data.train.samples=40000", "data.train.shape=[100]"};
  sim::reset({.memory = size_t{10} << 20});
  const std::string full = refusal(env, folder, large);
  CHECK(
      full.starts_with("device.data on: the training set can't be kept on the GPU: it takes 15.6 MiB as stored, more "
                       "than the "));
  CHECK(full.ends_with(": write device.data: auto or off"));
  // On the last rank somebody takes the memory between the question and the allocation.
  sim::reset({});
  const GpuRun whole(env, kMlp, {"device.kind=cuda", "device.data=off", "train.max_steps=1", "eval.every=never"},
                     folder / "count");
  const int before = sim::calls()["cudaMalloc"];
  sim::reset({});
  if (env.rank() == env.size() - 1) sim::fail_call("cudaMalloc", before - 2);
  const std::string failed = refusal(env, folder, {"device.kind=cuda", "device.data=on", "eval.every=never"});
  CAPTURE(failed);
  CHECK(failed.find("can't be kept on the GPU: GPU ") != std::string::npos);
  CHECK(failed.find("failed: out of memory") != std::string::npos);
  CHECK(failed.find("; or write device.data: off") != std::string::npos);
}
