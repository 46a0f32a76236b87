// --set key=value: the same checks with the key in front.
#include <doctest/doctest.h>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("overrides replace and add values") {
  const Config config =
      parse("train: {batch_size: 16}\n", {"train.batch_size=8", "eval.every=200 steps", "optimizer.kind=adam",
                                          "optimizer.betas=[0.8, 0.9]", "run.dir=\"a, b\""});
  CHECK_EQ(config.train.batch_size, 8);
  CHECK_EQ(config.eval.every.str(), "200 steps");
  CHECK_EQ(config.optimizer.beta1, 0.8);
  CHECK_EQ(config.run.dir, "a, b");
}

TEST_CASE("the last override wins and whole sections can be replaced") {
  CHECK_EQ(parse("", {"train.epochs=2", "train.epochs=3"}).train.epochs, 3);
  const Config config =
      parse("optimizer: {kind: adam, amsgrad: true}\n", {"optimizer={kind: sgd, lr: 0.5}", "optimizer.momentum=0.9"});
  CHECK_EQ(config.optimizer.kind, "sgd");
  CHECK_EQ(config.optimizer.lr, 0.5);
  CHECK_EQ(config.optimizer.momentum, 0.9);
}

TEST_CASE("the file is checked after all overrides") {
  CHECK_EQ(refusal("train: {epochs: 0}\n", {"train.epochs=2"}), "accepted");
  CHECK_EQ(
      refusal("train: {batch_size: 8}\n", {"train.global_batch_size=64"}),
      "--set train.global_batch_size: train.global_batch_size is given beside train.batch_size; give one of them (null "
      "takes one back)");
  CHECK_EQ(refusal("train: {batch_size: 8}\n", {"train.batch_size=null", "train.global_batch_size=64"}), "accepted");
}

TEST_CASE("layers are changed by their index") {
  const std::string text =
      "data: {train: {kind: toy}}\nmodel: {layers: [{linear: 8}, relu, dropout, {max_pool2d: [2, 2]}]}\n";
  const auto parsed = [&](const std::string& set) { return parse_config(text, "config.yaml", {set}).model.layers; };
  CHECK_EQ(parsed("model.layers.0.linear=64")[0].out, 64);
  CHECK_EQ(parsed("model.layers.0.linear.bias=false")[0].out, 8);
  CHECK_FALSE(parsed("model.layers.0.linear.bias=false")[0].bias);
  CHECK_EQ(parsed("model.layers.1=gelu")[1].kind, "gelu");
  CHECK_EQ(parsed("model.layers.1.name=act")[1].name, "act");
  CHECK_EQ(parsed("model.layers.2.dropout=0.1")[2].p, 0.1);
  CHECK_EQ(parsed("model.layers.2.dropout.p=0.2")[2].p, 0.2);
  CHECK_EQ(parsed("model.layers.3.max_pool2d.stride=1")[3].stride[0], 1);
  CHECK_EQ(parsed("model.layers.3.max_pool2d.stride=1")[3].kernel[0], 2);
  CHECK_EQ(message(text, {"model.layers.4=relu"}),
           "--set model.layers.4: model.layers is a list of 4; expected an index from 0 to 3, found '4'");
  CHECK_EQ(message(text, {"model.layers.-1=relu"}),
           "--set model.layers.-1: model.layers is a list of 4; expected an index from 0 to 3, found '-1'");
}

TEST_CASE("a value that stands for a map opens up") {
  const Config config = parse("device: cpu\noptimizer: sgd\n", {"device.threads=2", "optimizer.lr=0.5"});
  CHECK_EQ(config.device.kind, "cpu");
  CHECK_EQ(config.device.threads, 2);
  CHECK_EQ(config.optimizer.lr, 0.5);
  CHECK_EQ(parse("schedule: {kind: sequence, schedules: [cosine]}\n", {"schedule.schedules.0.t_max=7"})
               .schedule.schedules[0]
               .t_max,
           7);
  CHECK_EQ(refusal("train: {epochs: 3}\n", {"train.epochs.x=1"}),
           "--set train.epochs.x: train.epochs is '3', not a map");
}

TEST_CASE("messages have the key in place of the position") {
  CHECK_EQ(refusal("", {"train.batch_size=x"}), "--set train.batch_size: expected an integer, found 'x'");
  CHECK_EQ(refusal("", {"train.batch_size=0"}),
           "--set train.batch_size: 0 is out of range; expected an integer 1 <= x <= 1073741824");
  CHECK_EQ(refusal("", {"train.batch_size="}),
           "--set train.batch_size: expected an integer, found nothing; write null for the default");
  CHECK_EQ(refusal("", {"optimizer.learnign_rate=1"}),
           "--set optimizer.learnign_rate: unknown key 'learnign_rate' in optimizer; did you mean 'lr'?");
  CHECK_EQ(refusal("", {"train.lr=1"}), "--set train.lr: unknown key 'lr' in train; did you mean optimizer.lr?");
  CHECK_EQ(refusal("", {"trian.lr=1"}), "--set trian.lr: unknown key 'trian' at the top level; did you mean 'train'?");
  CHECK_EQ(refusal("", {"optimizer={kind: sgd, lr: 1, lr: 2}"}), "--set optimizer: duplicate key 'lr' in 0");
  CHECK_EQ(refusal("", {"optimizer={kind: adamx}"}),
           "--set optimizer: optimizer.kind: expected sgd | adam | adamw | adadelta | "
           "rmsprop | adagrad | lars | lamb, found 'adamx'; did you mean 'adam'?");
}

TEST_CASE("malformed overrides") {
  CHECK_EQ(refusal("", {"train.epochs"}), "--set train.epochs: expected KEY=VALUE");
  CHECK_EQ(refusal("", {"=3"}), "--set : expected a dotted path such as train.batch_size");
  CHECK_EQ(refusal("", {"train..epochs=3"}), "--set train..epochs: expected a dotted path such as train.batch_size");
  CHECK_EQ(refusal("", {"train.class_weights=1, 2"}),
           "--set train.class_weights: expected one value, found '1, 2'; a list is "
           "written [a, b], a text with commas or brackets in double quotes");
  CHECK_EQ(refusal("", {"train.epochs=1]"}), "--set train.epochs: illegal flow end");
  CHECK(refusal("", {"train.class_weights=[1"}).starts_with("--set train.class_weights: "));
}
