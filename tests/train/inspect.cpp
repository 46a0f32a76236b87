// What `lockstep inspect` prints: operations and parameters by formula, the largest batch that fits, its config.
#include <doctest/doctest.h>

#include <filesystem>

#include "config_support.h"
#include "core/error.h"
#include "data/files.h"
#include "nn/flops.h"
#include "train/config_batch.h"
#include "train/config_path.h"
#include "train/inspect/fit.h"
#include "train/inspect/memory_table.h"
#include "train/inspect/model_table.h"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kConvNet = R"(
model: {layers: [{conv2d: {out: 8, kernel: 3, padding: 1}, name: conv}, relu, flatten, {linear: 10, name: fc}]}
data:
  train: {kind: synthetic, name: random, samples: 4000, shape: [1, 16, 16], classes: 10}
  val: {kind: synthetic, name: random, samples: 900, shape: [1, 16, 16], classes: 10}
)";

Config config_of(const std::string& more = "") { return parse_config(kConvNet + more, "/tmp/inspect/c.yaml", {}); }

struct Asked {
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  Config config;
  DataFacts data;
  explicit Asked(const std::string& more = "") : config(config_of(more)), data(read_data_facts(config)) {}
  uint64_t needs(const Config& asked, int64_t batch, int64_t ranks = 1) const {
    return estimate_memory(of_batch_size(asked, batch), data, ranks, *backend).total();
  }
  Fit fit(uint64_t bytes, int64_t ranks = 1) const { return largest_batch(config, data, ranks, bytes, *backend); }
};

}  // namespace

TEST_CASE("inspect: the MNIST ConvNet has the operations of its formulas") {
  const Config config = parse_config("model: {preset: mnist_convnet}\ndata: {train: {kind: toy}}\n", "c.yaml", {});
  const ModelTable table = model_table(config, {1, 28, 28});
  const LayerRow total = table.total();
  CHECK(total.parameters == 1'199'882);
  CHECK(total.trainable == 1'199'882);
  const int64_t conv1 = 2 * 9 * 32 * 26 * 26 + 32 * 26 * 26, conv2 = 2 * 32 * 9 * 64 * 24 * 24 + 64 * 24 * 24;
  const int64_t fc1 = 2 * 9216 * 128 + 128, fc2 = 2 * 128 * 10 + 10;
  int64_t affine = 0, others = 0;
  for (const LayerRow& row : table.layers)
    (row.kind == "linear" || row.kind == "conv2d" ? affine : others) += row.forward;
  CHECK(affine == conv1 + conv2 + fc1 + fc2);
  CHECK(total.forward == affine + others);
  // Thrice for what has parameters but the first, twice for what has none.
  CHECK(total.training == 3 * affine - conv1 + 2 * others);
}

TEST_CASE("inspect: frozen layers cost no gradients below the first that trains") {
  const Config config = config_of("optimizer: {groups: [{match: ['conv.*'], trainable: false}]}\n");
  const ModelTable table = model_table(config, {1, 16, 16});
  REQUIRE(table.layers.size() == 4);
  CHECK(table.layers[0].trainable == 0);
  CHECK(table.layers[0].training == table.layers[0].forward);
  CHECK(table.layers[1].training == table.layers[1].forward);
  CHECK(table.layers[3].training == 2 * table.layers[3].forward);  // no gradient of its input
  CHECK(model_text(table).find("20570 parameters, 20490 trainable, 80 frozen") != std::string::npos);
}

TEST_CASE("inspect: operations of each kind follow the header's formulas") {
  const auto flops = [](LayerSpec spec, const Shape& in, const Shape& out) { return forward_flops(spec, in, out); };
  CHECK(flops({.kind = "linear", .out = 3, .bias = false}, {5}, {3}) == 30);
  CHECK(flops({.kind = "conv2d", .out = 4, .kernel = {3, 2}, .groups = 2}, {4, 6, 6}, {4, 4, 5}) ==
        2 * 2 * 6 * 80 + 80);
  CHECK(flops({.kind = "max_pool2d", .kernel = {2, 2}}, {3, 4, 4}, {3, 2, 2}) == 48);
  CHECK(flops({.kind = "adaptive_avg_pool2d"}, {3, 4, 4}, {3, 1, 1}) == 48);
  CHECK(flops({.kind = "batch_norm"}, {7}, {7}) == 14);
  CHECK(flops({.kind = "layer_norm", .affine = false}, {7}, {7}) == 35);
  CHECK(flops({.kind = "softmax"}, {7}, {7}) == 28);
  CHECK(flops({.kind = "dropout"}, {7}, {7}) == 0);
  CHECK_THROWS_AS(flops({.kind = "unknown"}, {7}, {7}), Error);
}

TEST_CASE("inspect: the largest batch fits and one more does not") {
  const Asked asked("eval: {batch_size: 10}\n");
  for (const int64_t batch : {1, 37, 200}) {
    const uint64_t bytes = asked.needs(asked.config, batch);
    const Fit fit = asked.fit(bytes);
    CHECK(fit.batch_size >= batch);  // memory is rounded to cache lines
    CHECK(fit.batch_size <= batch + 1);
    CHECK(fit.estimate.total() <= bytes);
    CHECK(asked.needs(asked.config, fit.batch_size + 1) > bytes);
    CHECK(*fit.config.train.batch_size == fit.batch_size);
  }
  CHECK(asked.fit(uint64_t{1} << 40).batch_size == 4000);
  CHECK(asked.fit(uint64_t{1} << 40, 3).batch_size == 1334);
}

TEST_CASE("inspect: a global batch stays and is accumulated and evaluation is made to fit") {
  const Asked asked("train: {global_batch_size: 240}\n");
  Config small = asked.config;
  small.eval.batch_size = 20;
  const uint64_t bytes = asked.needs(small, 45, 2);
  const Fit fit = asked.fit(bytes, 2);
  CHECK(fit.batch_size == 40);  // of the divisors of 120
  CHECK(*fit.config.train.global_batch_size == 240);
  CHECK(resolve_batch(fit.config.train, 2).batch_size == 40);
  CHECK(fit.config.train.accumulate == 3);
  CHECK(fit.config.eval.batch_size < 1000);
  CHECK(fit.estimate.total() <= bytes);
}

TEST_CASE("inspect: what fits nowhere is told with what it needs") {
  const Asked asked;
  try {
    asked.fit(1000);
    FAIL("nothing fits into 1000 bytes");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("a batch of 1 needs") != std::string::npos);
  }
}

TEST_CASE("inspect: batch norms start at a batch of two") {
  const Config config = parse_config(
      "model: {layers: [{linear: 4}, batch_norm, {linear: 2}]}\ndata: {train: {kind: synthetic, name: random, samples: "
      "64, "
      "shape: [3], classes: 2}}\n",
      "/tmp/inspect/c.yaml", {});
  const auto backend = make_cpu_backend({.threads = 1});
  const DataFacts data = read_data_facts(config);
  CHECK(largest_batch(config, data, 1, uint64_t{1} << 30, *backend).batch_size == 64);
  // 64 = 21 x 3 + 1: a batch of 21 or of 3 would leave one sample for the last.
  const auto needs = [&](int64_t batch) {
    return estimate_memory(of_batch_size(config, batch), data, 1, *backend).total();
  };
  CHECK(largest_batch(config, data, 1, needs(20) + (needs(22) - needs(20)) / 2, *backend).batch_size == 20);
}

TEST_CASE("inspect: a fitted config means the same in another folder") {
  const TempDir dir;
  fs::create_directories(dir.path() + "/a/configs");
  const std::string text =
      "model: {layers: [{linear: 2}]}\ndata: {train: {kind: csv, file: t.csv}}\nrun: {dir: runs/x}\n";
  const Config config = parse_config(text, dir.path() + "/a/configs/c.yaml", {});
  const Config beside = parse_config(to_yaml_at(config, dir.path() + "/a/new.yaml"), dir.path() + "/a/new.yaml", {});
  CHECK(beside.data.train.file == "t.csv");
  const Config away = parse_config(to_yaml_at(config, dir.path() + "/new.yaml"), dir.path() + "/new.yaml", {});
  CHECK(away.data.train.file == dir.path() + "/a/t.csv");
  CHECK(away.run.dir == dir.path() + "/a/runs/x");
}

TEST_CASE("inspect: bytes are read with and without units") {
  CHECK(parse_bytes("2000000") == 2'000'000);
  CHECK(parse_bytes("4GiB") == uint64_t{4} << 30);
  CHECK(parse_bytes("1.5 MiB") == 1'572'864);
  for (const char* wrong : {"", "GiB", "-1", "0", "4 apples", "1e30", "nan"})
    CHECK_THROWS_AS(parse_bytes(wrong), Error);
  CHECK(bytes_text(640) == "640 B");
  CHECK(bytes_text(uint64_t{3} << 29) == "1.50 GiB");
}
