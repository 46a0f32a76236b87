// Unknown, misplaced, missing and mistyped keys, with the exact messages; what the sections hold afterwards.
#include <doctest/doctest.h>

#include <cmath>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("an unknown key names the nearest one of its section") {
  CHECK_EQ(refusal("optimizer:\n  kind: adam\n  learnign_rate: 1e-3\n"),
           "config.yaml:5:3: unknown key 'learnign_rate' in optimizer; did you mean 'lr'?");
  CHECK_EQ(refusal("train: {epoch: 3}\n"), "config.yaml:3:9: unknown key 'epoch' in train; did you mean 'epochs'?");
  CHECK_EQ(refusal("train: {batchsize: 3}\n"),
           "config.yaml:3:9: unknown key 'batchsize' in train; did you mean 'batch_size'?");
  CHECK_EQ(refusal("train: {Batch-Size: 3}\n"),
           "config.yaml:3:9: unknown key 'Batch-Size' in train; did you mean 'batch_size'?");
  CHECK_EQ(refusal("optimiser: {lr: 1}\n"),
           "config.yaml:3:1: unknown key 'optimiser' at the top level; did you mean 'optimizer'?");
  CHECK_EQ(refusal("train: {gradient_accumulation_steps: 2}\n"),
           "config.yaml:3:9: unknown key 'gradient_accumulation_steps' in train; did you mean 'accumulate'?");
}

TEST_CASE("a right key in the wrong section is told where it belongs") {
  CHECK_EQ(refusal("train: {lr: 1e-3}\n"), "config.yaml:3:9: unknown key 'lr' in train; did you mean optimizer.lr?");
  CHECK_EQ(refusal("optimizer: {warmup: 3}\n"),
           "config.yaml:3:13: unknown key 'warmup' in optimizer; did you mean schedule.warmup?");
  CHECK_EQ(refusal("shuffle: false\n"),
           "config.yaml:3:1: unknown key 'shuffle' at the top level; did you mean sampler.shuffle?");
  CHECK_EQ(refusal("train: {seed: 3}\n"),
           "config.yaml:3:9: unknown key 'seed' in train; did you mean run.seed or sampler.seed?");
}

TEST_CASE("a key like no other is shown the known ones") {
  CHECK_EQ(
      refusal("device: {xyzzy: 3}\n"),
      "config.yaml:3:10: unknown key 'xyzzy' in device; known keys: kind, oversubscribe, threads, convolution, "
      "flush_denormals, deterministic, tf32, convolution_search, convolution_workspace_mb, cuda_graph, data, data_mb");
}

TEST_CASE("wrong types are named with what was found") {
  CHECK_EQ(refusal("train:\n  epochs: abc\n"), "config.yaml:4:11: train.epochs: expected an integer, found 'abc'");
  CHECK_EQ(refusal("train: {epochs: [3]}\n"), "config.yaml:3:17: train.epochs: expected an integer, found a list");
  CHECK_EQ(refusal("train: {epochs: {a: 3}}\n"), "config.yaml:3:17: train.epochs: expected an integer, found a map");
  CHECK_EQ(refusal("train: {epochs: }\n"),
           "config.yaml:3:17: train.epochs: expected an integer, found nothing; write null for the default");
  CHECK_EQ(refusal("optimizer: {lr: \"1e-3\"}\n"),
           "config.yaml:3:17: optimizer.lr: expected a number, found the quoted text \"1e-3\"; remove the quotes");
  CHECK_EQ(
      refusal("sampler: {shuffle: 'true'}\n"),
      "config.yaml:3:20: sampler.shuffle: expected true or false, found the quoted text \"true\"; remove the quotes");
  CHECK_EQ(refusal("sampler: {shuffle: yes}\n"),
           "config.yaml:3:20: sampler.shuffle: expected true or false, found 'yes'; write true or false");
  CHECK_EQ(refusal("train: {epochs: 010}\n"),
           "config.yaml:3:17: train.epochs: expected an integer, found '010'; leading "
           "zeros are not read (octal elsewhere): write 10");
  CHECK_EQ(refusal("train: 3\n"), "config.yaml:3:8: train: expected a map of keys, found '3'");
  CHECK_EQ(refusal("train: [epochs]\n"), "config.yaml:3:8: train: expected a map of keys, found a list");
  CHECK_EQ(refusal("run: {dir: [a]}\n"), "config.yaml:3:12: run.dir: expected a text, found a list");
  CHECK_EQ(refusal("run: {dir: ''}\n"), "config.yaml:3:12: run.dir: the text is empty");
  CHECK_EQ(refusal("run: {dir: \"a\\0b\"}\n"),
           "config.yaml:3:12: run.dir: a text must not contain line ends or control characters");
  CHECK_EQ(refusal("train: {class_weights: 1}\n"),
           "config.yaml:3:24: train.class_weights: expected a list [a, b] of number, found '1'");
  CHECK_EQ(refusal("train: {class_weights: [1, x]}\n"),
           "config.yaml:3:28: train.class_weights.1: expected a number, found 'x'");
}

TEST_CASE("learning rates in the forms people write") {
  for (const char* text : {"1e-3", "1.e-3", "1E-3", ".001", "+0.001"}) {
    CAPTURE(text);
    CHECK_EQ(parse(std::string("optimizer: {lr: ") + text + "}\n").optimizer.lr, 0.001);
  }
  CHECK_EQ(refusal("optimizer: {lr: -1}\n"),
           "config.yaml:3:17: optimizer.lr: -1 is out of range; expected a number >= 0");
  CHECK_EQ(refusal("optimizer: {lr: nan}\n"),
           "config.yaml:3:17: optimizer.lr: expected a number, found 'nan'; nan is not a value");
  CHECK_EQ(refusal("optimizer: {lr: 1e400}\n"),
           "config.yaml:3:17: optimizer.lr: 1e400 is out of range of a double (about 4.9e-324 to 1.8e308)");
}

TEST_CASE("values out of range name the range") {
  CHECK_EQ(refusal("train: {label_smoothing: 1.5}\n"),
           "config.yaml:3:26: train.label_smoothing: 1.5 is out of range; expected a number 0 <= x <= 1");
  CHECK_EQ(refusal("optimizer: {kind: adam, betas: [0.9, 1]}\n"),
           "config.yaml:3:38: optimizer.betas.1: 1 is out of range; expected a number 0 <= x < 1");
  CHECK_EQ(refusal("optimizer: {kind: adam, betas: [0.9]}\n"),
           "config.yaml:3:32: optimizer.betas: expected 2 items, found 1");
  CHECK_EQ(refusal("optimizer: {kind: adam, eps: 0}\n"),
           "config.yaml:3:30: optimizer.eps: 0 is out of range; expected a number >= 1.2e-38");
  CHECK_EQ(refusal("distributed: {timeout: 0}\n"),
           "config.yaml:3:24: distributed.timeout: 0 is out of range; expected a number > 0");
  CHECK_EQ(refusal("run: {seed: -1}\n"),
           "config.yaml:3:13: run.seed: -1 is out of range; expected an integer from 0 to 18446744073709551615");
}

TEST_CASE("choices are listed with the nearest one") {
  CHECK_EQ(refusal("optimizer: {kind: adamx}\n"),
           "config.yaml:3:19: optimizer.kind: expected sgd | adam | adamw | adadelta | "
           "rmsprop | adagrad | lars | lamb, found 'adamx'; did you mean 'adam'?");
  CHECK_EQ(refusal("sampler: {uneven: Exact}\n"),
           "config.yaml:3:19: sampler.uneven: expected exact | pad | drop, found 'Exact'; did you mean 'exact'?");
}

TEST_CASE("infinity is the largest-norm type and nothing else") {
  CHECK(std::isinf(parse("train: {clip_norm: 1, clip_norm_type: inf}\n").train.clip_norm_type));
  CHECK_EQ(refusal("train: {clip_norm: inf}\n"),
           "config.yaml:3:20: train.clip_norm: expected a number, found 'inf'; infinity is not allowed here");
  CHECK_EQ(refusal("train: {clip_norm_type: -inf}\n"),
           "config.yaml:3:25: train.clip_norm_type: -inf is out of range; expected a number > 0, inf allowed");
}

TEST_CASE("null is the same as leaving the key out") {
  const Config config =
      parse("train: {max_steps: null, epochs: ~, batch_size: 8}\noptimizer: {lr: null}\nsampler: null\nlog:\n");
  CHECK_FALSE(config.train.max_steps.has_value());
  CHECK_EQ(config.train.epochs, 1);
  CHECK_FALSE(config.optimizer.lr.has_value());
  CHECK(config.sampler.shuffle);
  CHECK_EQ(message("model: mlp_752\ndata: {train: {kind: idx, images: null, labels: a}}\n"),
           "config.yaml:2:15: data.train: missing key 'images' (kind idx)");
}

TEST_CASE("texts are taken as they stand") {
  CHECK_EQ(parse("run: {dir: yes}\n").run.dir, "yes");
  CHECK_EQ(parse("run: {dir: 1e-3}\n").run.dir, "1e-3");
  CHECK_EQ(parse("run: {dir: \"007\"}\n").run.dir, "007");
}

TEST_CASE("keys of another kind are refused") {
  CHECK_EQ(message("model: mlp_752\ndata:\n  train:\n    kind: csv\n    file: a.csv\n    images: b\n"),
           "config.yaml:6:5: data.train.images belongs to kind idx, not csv");
  CHECK_EQ(refusal("optimizer: {kind: adam, momentum: 0.9}\n"),
           "config.yaml:3:25: optimizer.momentum belongs to kind sgd | rmsprop | lars, not adam");
  CHECK_EQ(refusal("schedule: {kind: step, t_max: 3}\n"),
           "config.yaml:3:24: schedule.t_max belongs to kind cosine, not step");
  CHECK_EQ(refusal("train: {loss: mse, label_smoothing: 0.1}\n"),
           "config.yaml:3:20: train.label_smoothing belongs to loss cross_entropy, not mse");
  CHECK_EQ(refusal("optimizer: {kind: adam, momentum: null}\n"), "accepted");
}

TEST_CASE("data sets of every kind") {
  const Config config = parse_config(
      "model: mlp_752\n"
      "data:\n"
      "  train: {kind: idx, images: a.gz, labels: b.gz, normalize: {mean: 0.1307, std: 0.3081}, first: 10, count: 20}\n"
      "  val: {kind: csv, file: c.csv, features: [x0, 1], target: y, header: false}\n",
      "config.yaml", {});
  CHECK_EQ(config.model.preset, "mlp_752");
  CHECK_EQ(config.data.train.mean, 0.1307);
  CHECK_EQ(config.data.train.std, 0.3081);
  CHECK_EQ(config.data.train.first, 10);
  CHECK_EQ(config.data.train.count, 20);
  CHECK_EQ(config.data.train.where, "config.yaml:3:10");
  REQUIRE(config.data.val);
  CHECK_EQ(config.data.val->features, std::vector<std::string>{"x0", "1"});
  CHECK_EQ(config.data.val->header, false);
  CHECK_EQ(refusal("", {"data.train={kind: npy, x: a}"}), "--set data.train: data.train: missing key 'y' (kind npy)");
  CHECK_EQ(refusal("", {"data.train={kind: synthetic}"}),
           "--set data.train: data.train: missing key 'name' (kind synthetic)");
  CHECK_EQ(refusal("", {"data.train={kind: idx, images: a, labels: b, normalize: {mean: 1}}"}),
           "--set data.train: data.train.normalize: missing key 'std'");
  CHECK_EQ(refusal("", {"data.train={kind: synthetic, name: teacher, samples: 8, shape: [3, 0]}"}),
           "--set data.train: data.train.shape.1: 0 is out of range; expected an integer 1 <= x <= 1073741824");
}

TEST_CASE("a section may be given by its main value") {
  CHECK_EQ(parse("device: cpu\n").device.kind, "cpu");
  CHECK_EQ(parse("optimizer: adam\nschedule: cosine\n").schedule.kind, "cosine");
  CHECK_EQ(refusal("device: gpu\n"),
           "config.yaml:3:9: device.kind: expected auto | cpu | cuda, found 'gpu'; did you mean 'cpu'?");
}

TEST_CASE("model is a known preset or a list of layers") {
  const std::string data = "data: {train: {kind: toy}}\n";
  CHECK_EQ(message("model: {preset: mlp_751}\n" + data),
           "config.yaml:1:17: model.preset: no preset is named 'mlp_751'; "
           "known: mlp_752, mnist_convnet, mnist_example; did you mean 'mlp_752'?");
  CHECK_EQ(message("model: {preset: mlp_752, layers: [relu]}\n" + data),
           "config.yaml:1:34: model.layers is given beside model.preset; give one of them (null takes one back)");
  CHECK_EQ(message("model: {}\n" + data), "config.yaml:1:8: model: missing key 'layers' or 'preset'");
  CHECK_EQ(message("model: {layers: []}\n" + data),
           "config.yaml:1:17: model.layers: expected 1 or more items, found 0");
}

TEST_CASE("eval.every is a period") {
  CHECK_EQ(parse("eval: {every: 1 epoch}\n").eval.every, Period{Period::Kind::epochs, 1});
  CHECK_EQ(parse("eval: {every: 200 steps}\n").eval.every, Period{Period::Kind::steps, 200});
  CHECK_EQ(parse("eval: {every: \"1  step\"}\n").eval.every, Period{Period::Kind::steps, 1});
  CHECK_EQ(parse("eval: {every: never}\n").eval.every.str(), "never");
  const std::string start = "config.yaml:3:15: eval.every: expected 'N epochs', 'N steps' or never, found ";
  CHECK_EQ(refusal("eval: {every: 200}\n"), start + "'200'; write '200 epochs' or '200 steps'");
  CHECK_EQ(refusal("eval: {every: 0 steps}\n"), start + "'0 steps'; N is 1 or more");
  CHECK_EQ(refusal("eval: {every: 2 step s}\n"), start + "'2 step s'; did you mean 'steps'?");
  CHECK_EQ(refusal("eval: {every: epoch}\n"), start + "'epoch'; write '1 epoch'");
  CHECK_EQ(refusal("eval: {every: 1.5 epochs}\n"), start + "'1.5 epochs'");
}

TEST_CASE("rules between keys of the optimizer and the schedule") {
  CHECK_EQ(refusal("optimizer: {kind: sgd, nesterov: true}\n"),
           "config.yaml:3:34: optimizer.nesterov needs momentum above 0");
  CHECK_EQ(refusal("optimizer: {kind: sgd, nesterov: true, momentum: 0.9, dampening: 0.1}\n"),
           "config.yaml:3:34: optimizer.nesterov needs dampening 0, found 0.1");
  CHECK_EQ(refusal("optimizer: {kind: sgd, nesterov: true}\nschedule: {kind: one_cycle, max_lr: 1}\n"), "accepted");
  CHECK_EQ(refusal("schedule: {kind: multi_step, milestones: [5, 3]}\n"),
           "config.yaml:3:42: schedule.milestones must be in ascending order");
  CHECK_EQ(refusal("schedule: {kind: multi_step}\n"), "config.yaml:3:11: schedule.milestones is missing or empty");
  CHECK_EQ(refusal("schedule: {kind: one_cycle}\n"),
           "config.yaml:3:11: schedule: missing key 'max_lr' (kind one_cycle)");
  CHECK_EQ(refusal("schedule: {kind: plateau}\n"),
           "config.yaml:3:11: schedule.metric is val.loss but there is no data.val");
  CHECK_EQ(parse("schedule: {kind: plateau, metric: train.loss}\n").schedule.factor, 0.1);
  CHECK_EQ(parse("schedule: {kind: constant}\n").schedule.factor, 1.0 / 3);
}

TEST_CASE("a sequence holds schedules") {
  const Config config = parse(
      "schedule: {kind: sequence, per: epoch, schedules: [{kind: linear, start_factor: 0.25, total: 4}, cosine], "
      "milestones: [4]}\n");
  REQUIRE_EQ(config.schedule.schedules.size(), 2);
  CHECK_EQ(config.schedule.schedules[0].start_factor, 0.25);
  CHECK_EQ(config.schedule.schedules[1].kind, "cosine");
  CHECK_EQ(config.schedule.schedules[1].per, "epoch");
  CHECK_EQ(refusal("schedule: {kind: sequence, schedules: [linear, cosine], milestones: [1, 2]}\n"),
           "config.yaml:3:69: schedule.milestones has 2 entries for 2 schedules; expected 1");
  CHECK_EQ(refusal("schedule: {kind: sequence, schedules: [linear, {kind: cosin}], milestones: [1]}\n"),
           "config.yaml:3:55: schedule.schedules.1.kind: expected none | step | multi_step | exponential | constant | "
           "linear | "
           "polynomial | cosine | one_cycle | sequence | plateau, found 'cosin'; did you mean 'cosine'?");
  CHECK_EQ(refusal("schedule: {kind: sequence, schedules: [{kind: linear, per: epoch}]}\n"),
           "config.yaml:3:60: schedule.schedules.0.per must be the sequence's: step");
  CHECK_EQ(refusal("schedule: {kind: sequence, schedules: [plateau]}\n"),
           "config.yaml:3:40: schedule.schedules.0.kind plateau can't be part of a sequence");
}

TEST_CASE("parameter groups") {
  const Config config =
      parse("optimizer: {kind: adamw, groups: [{match: [norm, bias], weight_decay: 0}, {match: ['fc*'], lr: 0.1}]}\n");
  REQUIRE_EQ(config.optimizer.groups.size(), 2);
  CHECK_EQ(config.optimizer.groups[0].match, std::vector<std::string>{"norm", "bias"});
  CHECK_EQ(config.optimizer.groups[0].weight_decay, 0);
  CHECK_FALSE(config.optimizer.groups[0].lr.has_value());
  CHECK_EQ(config.optimizer.groups[1].lr, 0.1);
  CHECK_EQ(refusal("optimizer: {groups: [{lr: 1}]}\n"), "config.yaml:3:22: optimizer.groups.0: missing key 'match'");
  CHECK_EQ(refusal("optimizer: {groups: [{match: [a], lr: 1, trainable: false}]}\n"),
           "config.yaml:3:39: optimizer.groups.0.lr has no effect on a group with trainable: false");
}
