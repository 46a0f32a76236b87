// The real program on simulated GPUs under mpirun: what a run prints and logs, bits that no number of ranks changes,
// and that a call which fails on one rank ends all of them with its name.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/training_run.h"

using namespace lockstep::test;

namespace {

const std::string kMlp =
    "model: {layers: [{linear: 12}, relu, {dropout: 0.3}, {linear: 9}, tanh, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 48, shape: [7], classes: 3, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 21, shape: [7], classes: 3, seed: 6}\n"
    "train: {epochs: 2, batch_size: 4}\n"
    "optimizer: {kind: adam, lr: 0.01}\n"
    "device: {kind: cuda, threads: 1}\n"
    "log: {every: 1}\n";

TrainingRun run(int ranks, const std::vector<std::string>& overrides) {
  return train_text(kMlp, ranks, overrides, 100, SIMULATED_PROGRAM);
}

std::string digest_of(const TrainingRun& run) {
  REQUIRE_MESSAGE(run.outcome.exit_code == 0, run.outcome.output);
  return run.of("end").at(0)["model_sha256"];
}

// A variable of the environment for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a run says which GPUs and which communicator it has") {
  const TrainingRun two = run(2, {});
  CHECK(two.outcome.exit_code == 0);
  CHECK(two.outcome.says("cuda 0, fp32 (without TF32), communicator nccl: every rank has a GPU of its own"));
  const TrainingRun chosen = run(2, {"device.kind=auto"});
  CHECK(chosen.outcome.says("cuda 0 (every rank has a GPU of its own)"));
  const Variable none("LOCKSTEP_SIM_GPUS", "1");
  const TrainingRun cpu = run(2, {"device.kind=auto"});
  CHECK(cpu.outcome.exit_code == 0);
  CHECK(cpu.outcome.says("has no GPU of its own"));
  const TrainingRun refused = run(2, {});
  CHECK(refused.outcome.exit_code == 2);
  CHECK(refused.outcome.says("local rank 1 sees 1 GPU(s)"));
  CHECK(run(2, {"device.oversubscribe=true"}).outcome.says("communicator staged shm"));
}

TEST_CASE("two runs on GPUs end with the same bits") {
  const std::string first = digest_of(run(4, {}));
  const Variable seed("LOCKSTEP_SIM_SEED", "77");
  CHECK(digest_of(run(4, {})) == first);
}

TEST_CASE("virtual ranks on GPUs end with the same bits on any number of ranks") {
  const std::vector<std::string> overrides = {"train.virtual_ranks=4", "train.accumulate=2", "train.clip_norm=1"};
  const TrainingRun one = run(1, overrides);
  const std::string expected = digest_of(one);
  for (const int ranks : {2, 4}) {
    const TrainingRun several = run(ranks, overrides);
    CHECK(digest_of(several) == expected);
    CHECK(several.losses() == one.losses());
  }
}

TEST_CASE("a call that fails on one rank ends all ranks with its name") {
  const std::vector<std::string> overrides = {"train.max_steps=4", "distributed.first_bucket_mb=0",
                                              "distributed.bucket_mb=0", "distributed.timeout=20"};
  const auto file = std::filesystem::temp_directory_path() / fmt::format("sim_calls_{}", getpid());
  int calls = 0;
  {
    const Variable count("LOCKSTEP_SIM_COUNT", file.string());
    REQUIRE(run(2, overrides).outcome.exit_code == 0);
    std::ifstream(file) >> calls;
    std::filesystem::remove(file);
  }
  REQUIRE(calls > 300);
  // Every one of them takes an hour; the step is prime to what repeats.
  const int step = std::getenv("LOCKSTEP_LONG_TESTS") != nullptr ? 7 : calls / 12 + 1;
  int ended = 0;
  for (int call = 0; call < calls; call += step) {
    CAPTURE(call);
    const Variable fail("LOCKSTEP_SIM_FAIL", fmt::format("1::{}", call));
    const TrainingRun failed = run(2, overrides);
    CAPTURE(failed.outcome.output);
    CHECK_FALSE(failed.outcome.timed_out);
    CHECK(failed.outcome.seconds < 60);
    if (failed.outcome.exit_code == 0) continue;  // some calls are no loss
    ++ended;
    CHECK((failed.outcome.says("cuda") || failed.outcome.says("cublasLt") || failed.outcome.says("nccl")));
    CHECK(failed.outcome.says("failed"));
  }
  CHECK(ended > 6);
}
