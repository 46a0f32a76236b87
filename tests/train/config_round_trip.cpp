// The printed config is accepted, means the same and prints the same; the locale changes nothing; the reference is
// kept.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <locale>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<std::string>& examples() {
  static const std::vector<std::string> texts{
      with_sections(""),
      "model: mnist_convnet\n"
      "data:\n"
      "  train: {kind: idx, images: datasets/mnist/a.gz, labels: 'b c.gz', normalize: {mean: 0.1307, std: 0.3081}}\n"
      "  val: {kind: idx, images: \"we\\\"ird\\\\ \xC3\xA4#: [x]\", labels: null.gz, first: 3, count: 7}\n"
      "  prefetch: 0\n"
      "run: {dir: runs/mnist, seed: 18446744073709551615, seed_per_rank: true, stop_signals: "
      "[SIGUSR2, SIGINT], max_time: 1h30m, time_margin: 0.5, requeue: true}\n"
      "sampler: {shuffle: false, seed: 3, reshuffle: false, generator: global, uneven: pad, drop_last: true, "
      "early_end: stop}\n"
      "train: {epochs: 3, max_steps: 51, global_batch_size: 32, accumulate: 4, label_smoothing: 0.1, class_weights: "
      "[1, 0.1],\n"
      "        early_stopping: {metric: val.f1_weighted, patience: 2, min_delta: 1e-3, mode: max},\n"
      "        ignore_index: -1, clip_norm: 1e-300, clip_norm_type: inf, clip_value: 0.3, "
      "on_nonfinite: skip, replica_check: 100}\n"
      "optimizer: {kind: adamw, lr: 1e-4, weight_decay: 0.01, betas: [0.85, 0.95], eps: 1e-7, amsgrad: true, "
      "decay_norm_and_bias: false, groups: [{match: [norm, 'fc*.weight'], lr: 0.3}, {match: [bias], weight_decay: "
      "0}, {match: ['conv*'], trainable: false}]}\n"
      "schedule: {kind: sequence, per: epoch, milestones: [3, 9], schedules: [{kind: linear, total: 3}, cosine, {kind: "
      "sequence, "
      "milestones: [2], schedules: [{kind: step, step_size: 2, gamma: 0.7}, exponential]}]}\n"
      "eval: {every: 200 steps, batch_size: 10, at_start: true, metrics: [f1, auroc, loss, top_5]}\n"
      "checkpoint: {every: 2 epochs, keep: 5, keep_every: 100, keep_best: false, best: val.auroc, on_error: warn, "
      "background: false}\n"
      "log: {every: 1, per_rank: true, indices: true, every_micro_step: true, watch: [\"value:0.weight[0,0]\", "
      "checksum:fc1.weight]}\n"
      "distributed: {world_size: 2, backend: mpi, sync: false, timeout: 2.5, average: ranks, overlap: false, "
      "bucket_mb: 0.5, first_bucket_mb: 0}\n"
      "device: {kind: cpu, threads: 2, convolution: winograd, flush_denormals: false}\n",
      "data: {train: {kind: csv, file: 'shards/part-{rank}.csv', features: [a, '1', \"\xC3\xA4\"], target: y, header: "
      "true}}\n"
      "model:\n"
      "  layers: [{conv2d: {out: 8, kernel: [3, 1], stride: [1, 2], padding: 1, groups: 2, dilation: 1, bias: false}, "
      "name: c},\n"
      "    relu, {leaky_relu: 0.3}, {gelu: {tanh_approximation: true}}, tanh, sigmoid, {max_pool2d: {kernel: 3, "
      "stride: 2}},\n"
      "    {avg_pool2d: 2}, {adaptive_avg_pool2d: [1, 2]}, {adaptive_max_pool2d: 3}, {add: c, input: '3', name: 'odd "
      "name: x'},\n"
      "    {dropout: {p: 0.1, torch_stream: true}}, {batch_norm: {momentum: null, eps: 0.1}}, {layer_norm: [3, 4]},\n"
      "    {group_norm: {groups: 2, affine: false}}, softmax, flatten, {linear: {out: 3, bias: false}}]\n"
      "train: {loss: smooth_l1, beta: 0.5, reduction: sum}\n"
      "optimizer: {kind: sgd, momentum: 0.9, nesterov: true}\n"
      "schedule: {kind: one_cycle, max_lr: 0.1, total: 100, anneal: linear, three_phase: true, warmup: 5}\n"
      "eval: {every: never}\n",
      "model: {layers: [{linear: 1}]}\n"
      "data: {train: {kind: synthetic, name: teacher, samples: 64, classes: 3, shape: [1, 2, 3], seed: 9, "
      "seed_per_rank: true},\n"
      "       val: {kind: npy, x: a.npy, y: b.npy}}\n"
      "optimizer: {kind: rmsprop, momentum: 0.1, centered: true, alpha: 0.5, maximize: true}\n"
      "train: {loss: bce_with_logits, class_weights: [2]}\n"
      "schedule: {kind: plateau, mode: max, metric: val.accuracy, factor: 0.3, patience: 0, threshold_mode: abs}\n",
      with_sections("optimizer: {kind: adagrad, lr_decay: 0.1, initial_accumulator_value: 1e-3}\nschedule: {kind: "
                    "polynomial, power: 2}\n"),
      with_sections("optimizer: {kind: adadelta, rho: 0.8}\nschedule: {kind: multi_step, milestones: [1, 1, 7]}\n"),
      with_sections(
          "optimizer: {kind: lars, momentum: 0.9, trust_coefficient: 0.02, lr_reference_batch: 256}\ntrain: {ema: "
          "0.99}\ndistributed: {batch_norm: sync}\n"),
      with_sections("optimizer: {kind: lamb, betas: [0.8, 0.9], adapt_norm_and_bias: true, lr_reference_batch: 64, "
                    "lr_scaling: sqrt}\ndistributed: {batch_norm: average}\n"),
      with_sections("schedule: {kind: constant, factor: 0.3333333333333333}\n")};
  return texts;
}

std::string resolved(const std::string& text) { return to_yaml(parse_config(text, "config.yaml", {})); }

class DecimalComma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("the printed config is accepted and prints itself again") {
  for (const std::string& text : examples()) {
    const std::string first = resolved(text);
    CAPTURE(first);
    CHECK_EQ(resolved(first), first);
  }
}

TEST_CASE("the printed config has the values of the file") {
  const Config file = parse_config(examples()[1], "config.yaml", {});
  const Config printed = parse_config(to_yaml(file), "config.yaml", {});
  CHECK_EQ(printed.model.preset, "mnist_convnet");
  CHECK_EQ(printed.data.val->images, "we\"ird\\ \xC3\xA4#: [x]");
  CHECK_EQ(printed.data.train.std, 0.3081);
  CHECK_EQ(printed.run.seed, 18446744073709551615ULL);
  CHECK_EQ(printed.train.class_weights, std::vector<double>{1, 0.1});
  CHECK_EQ(printed.train.clip_norm, 1e-300);
  CHECK_FALSE(printed.train.batch_size.has_value());
  CHECK_EQ(printed.optimizer.groups.size(), 3);
  CHECK(printed.optimizer.groups[1].trainable);
  CHECK_FALSE(printed.optimizer.groups[2].trainable);
  CHECK_EQ(printed.sampler.early_end, "stop");
  CHECK_EQ(printed.optimizer.beta2, 0.95);
  CHECK_EQ(printed.schedule.schedules[2].schedules[0].gamma, 0.7);
  CHECK_EQ(printed.schedule.schedules[0].start_factor, 1.0 / 3);
  CHECK_EQ(printed.log.watch[0], "value:0.weight[0,0]");
  CHECK_EQ(printed.distributed.timeout, 2.5);
  CHECK_EQ(printed.distributed.average, "ranks");
  CHECK_EQ(printed.distributed.bucket_mb, 0.5);
  CHECK_EQ(printed.train.on_nonfinite, "skip");
  CHECK_EQ(printed.train.replica_check, 100);
}

TEST_CASE("the printed layers have the values of the file") {
  const Config file = parse_config(examples()[2], "config.yaml", {});
  const Config printed = parse_config(to_yaml(file), "config.yaml", {});
  REQUIRE_EQ(printed.model.layers.size(), file.model.layers.size());
  for (size_t i = 0; i < file.model.layers.size(); ++i) {
    LayerSpec expected = file.model.layers[i];
    const LayerSpec& found = printed.model.layers[i];
    CAPTURE(i);
    CHECK_EQ(found.kind, expected.kind);
    CHECK_EQ(found.name, expected.name);
    CHECK_EQ(found.input, expected.input);
    CHECK_EQ(found.add, expected.add);
    CHECK_EQ(found.kernel, expected.kernel);
    CHECK_EQ(found.stride, expected.stride);
    CHECK_EQ(found.momentum, expected.momentum);
    CHECK_EQ(found.normalized_shape, expected.normalized_shape);
    CHECK_EQ(found.torch_stream, expected.torch_stream);
  }
}

TEST_CASE("defaults stand in the structs") {
  const Config config = parse("");
  CHECK_EQ(config.run.seed, RunConfig{}.seed);
  CHECK_EQ(config.train.batch_size, 32);
  CHECK_EQ(config.optimizer.kind, "sgd");
  CHECK_FALSE(config.optimizer.lr.has_value());
  CHECK_EQ(config.schedule.factor, ScheduleConfig{}.factor);
  CHECK_EQ(config.eval.every, Period{});
  CHECK_FALSE(config.data.val.has_value());
}

TEST_CASE("a locale with a decimal comma changes nothing") {
  std::vector<std::string> expected;
  for (const std::string& text : examples()) expected.push_back(resolved(text));
  const std::string refused = refusal("train: {epochs: 0}\n");
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  const bool german = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;  // where installed, the C library's too
  if (!german) MESSAGE("de_DE.UTF-8 is not installed: checked with a C++ locale only");
  std::vector<std::string> found;
  for (const std::string& text : examples()) found.push_back(resolved(text));
  const std::string refused_there = refusal("train: {epochs: 0}\n");
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  CHECK_EQ(found, expected);
  CHECK_EQ(refused_there, refused);
}

// Rewrites the page where LOCKSTEP_UPDATE_DOCS is set.
TEST_CASE("docs config.md is the reference made from the table of keys") {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/docs/config.md";
  if (std::getenv("LOCKSTEP_UPDATE_DOCS") != nullptr) std::ofstream(path) << config_reference();
  std::ifstream file(path);
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const bool same = page == config_reference();
  CHECK_MESSAGE(same, "docs/config.md is out of date: run unit_train with LOCKSTEP_UPDATE_DOCS=1");
}

TEST_CASE("the reference names every key of a printed config") {
  const std::string reference = config_reference();
  for (const char* key :
       {"`global_batch_size`", "`learning_rate`", "`betas`", "`normalize`", "`schedules`", "`count_include_pad`"}) {
    CAPTURE(key);
    CHECK_EQ(reference.find(key) != std::string::npos, std::string(key) != "`learning_rate`");  // a synonym is no key
  }
}
