// ranks: 1 2
// links: train
// The memory estimate beside what a trainer then really holds: part by part where a part can be asked for its size, and
// the sum beside the growth of the heap.
#include "train/memory_estimate.h"

#include <doctest/doctest.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>

#include "comm/factory.h"
#include "support/memory_folder.h"
#include "train/trainer.h"

using namespace lockstep;
using lockstep::test::memory_folder;
namespace fs = std::filesystem;

namespace {

constexpr const char* kMlp = R"(
model: {layers: [{linear: 1500}, relu, {dropout: 0.2}, {linear: 500}, tanh, {linear: 10}]}
data:
  train: {kind: synthetic, name: random, samples: 1500, shape: [800], classes: 10, seed: 5}
  val: {kind: synthetic, name: random, samples: 300, shape: [800], classes: 10, seed: 6}
train: {epochs: 1, batch_size: 128, ema: 0.99}
optimizer: {kind: adamw, lr: 1e-3}
)";

constexpr const char* kConvNet = R"(
model:
  layers:
    - {conv2d: {out: 32, kernel: 3, padding: 1}}
    - batch_norm
    - relu
    - {conv2d: {out: 48, kernel: 3, padding: 1}}
    - relu
    - {max_pool2d: 2}
    - flatten
    - {dropout: 0.25}
    - {linear: 10}
data:
  train: {kind: synthetic, name: random, samples: 600, shape: [3, 28, 28], classes: 10, seed: 5}
  val: {kind: synthetic, name: random, samples: 250, shape: [3, 28, 28], classes: 10, seed: 6}
train: {epochs: 1, batch_size: 100}
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
eval: {batch_size: 60}
)";

// Bytes in use on the heap; 0 where a sanitizer owns it.
size_t heap() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// One that all ranks know.
struct Folder {
  std::string path;
  Communicator& communicator;
  explicit Folder(Communicator& ranks)
      : path(broadcast_text((memory_folder() / ("lockstep_memory_" + std::to_string(getpid()))).string(), ranks)),
        communicator(ranks) {}
  ~Folder() {
    if (communicator.rank() == 0) fs::remove_all(path);
  }
};

void check_estimate(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const MpiEnvironment environment;
  const auto communicator = make_communicator("auto", environment, 60, nullptr);
  const Folder folder(*communicator);
  std::vector<std::string> all = overrides;
  all.push_back("run.dir=" + folder.path);
  const Config config = parse_config(text, "memory.yaml", all);
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  const auto backend = make_cpu_backend({.threads = 1});
  const MemoryEstimate estimate = estimate_memory(config, read_data_facts(config), communicator->size(), *backend);

  const size_t before = heap();
  RunLog log(folder.path, communicator->rank() == 0);
  Trainer trainer(config, *backend, *communicator, log);
  trainer.run();
  const size_t grown = heap() - before;

  const ParameterStore& store = trainer.network().store();
  CHECK_EQ(estimate.parameters, store.values().size_bytes());
  CHECK_EQ(estimate.activations, trainer.network().activation_bytes());
  uint64_t optimizer = 0;
  for (const StateArray& array : trainer.optimizer().state()) optimizer += array.values.size_bytes();
  CHECK_EQ(estimate.optimizer, optimizer);
  if (!config.train.virtual_ranks) CHECK_EQ(estimate.gradients, store.gradients().size_bytes());
  CHECK_EQ(estimate.average, config.train.ema ? estimate.parameters : 0);
  if (before == 0) {
    MESSAGE("SKIPPED: a sanitizer owns malloc in this build");
    return;
  }
  // Between two ranks the gradients lie in shared memory, and the parameters where ranks share the update.
  const uint64_t of_rank = communicator->rank() == 0 ? estimate.total() : estimate.of_other_rank();
  const uint64_t shared = communicator->size() > 1 ? store.gradients().size_bytes() : 0;
  const uint64_t expected = of_rank - shared - (trainer.sharded() ? store.values().size_bytes() : 0);
  MESSAGE("estimated ", expected, ", held ", grown);
  CHECK(static_cast<double>(grown) == doctest::Approx(static_cast<double>(expected)).epsilon(0.03));
}

}  // namespace

TEST_CASE("memory estimate: an MLP with average and checkpoints holds what was estimated") {
  check_estimate(kMlp, {"checkpoint.every=2"});
  check_estimate(kMlp, {"optimizer.kind=adagrad", "train.ema=null", "eval.every=never", "data.prefetch=4"});
}

TEST_CASE("memory estimate: a ConvNet holds what was estimated at several batch sizes") {
  check_estimate(kConvNet);
  check_estimate(kConvNet, {"train.batch_size=32", "eval.batch_size=250"});
  check_estimate(kConvNet, {"train.batch_size=600", "checkpoint.every=1 epoch"});
}

TEST_CASE("memory estimate: 16-bit weights and virtual ranks are counted") {
  check_estimate(kConvNet, {"train.precision=bf16"});
  check_estimate(kMlp, {"train.precision=fp16"});
  check_estimate(kMlp, {"train.virtual_ranks=8", "train.batch_size=16"});
}
