// The section checkpoint and model.init_from.
#include <doctest/doctest.h>

#include "config_support.h"
#include "train/config_value.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string model_refusal(const std::string& init_from) {
  return message("model: {layers: [{linear: 2}], init_from: " + init_from + "}\ndata: {train: {kind: toy}}\n");
}

Config with_init(const std::string& init_from) {
  return parse_config("model: {layers: [{linear: 2}], init_from: " + init_from + "}\ndata: {train: {kind: toy}}\n",
                      "config.yaml", {});
}

}  // namespace

TEST_CASE("checkpoints are off unless asked for") {
  const CheckpointConfig off = parse("").checkpoint;
  CHECK_EQ(off.every.str(), "never");
  CHECK_EQ(off.keep, 3);
  CHECK(off.keep_best);
  CHECK(off.background);
  CHECK_EQ(off.on_error, "stop");
  CHECK_FALSE(off.keep_every.has_value());
}

TEST_CASE("the section checkpoint") {
  const CheckpointConfig on =
      parse(
          "checkpoint: {every: 500 steps, keep: 1, keep_every: 2000, keep_best: false, on_error: warn, "
          "background: false}\n")
          .checkpoint;
  CHECK_EQ(on.every, Period{Period::Kind::steps, 500});
  CHECK_EQ(on.keep, 1);
  CHECK_EQ(on.keep_every, 2000);
  CHECK_FALSE(on.keep_best);
  CHECK_EQ(on.on_error, "warn");
  CHECK_FALSE(on.background);
  CHECK_EQ(parse("checkpoint: 2 epochs\n").checkpoint.every, Period{Period::Kind::epochs, 2});
  CHECK_EQ(parse("checkpoint: {every: 500}\n").checkpoint.every, Period{Period::Kind::steps, 500});
  CHECK_EQ(refusal("checkpoint: {every: 0}\n"),
           "config.yaml:3:21: checkpoint.every: expected 'N epochs', 'N steps' or never, found '0'; write '0 "
           "epochs' or '0 steps'");
  CHECK_EQ(refusal("checkpoint: {keep: 0}\n"),
           "config.yaml:3:20: checkpoint.keep: 0 is out of range; expected an integer 1 <= x <= 1048576");
  CHECK_EQ(refusal("checkpoint: {on_error: ignore}\n"),
           "config.yaml:3:24: checkpoint.on_error: expected stop | warn, found 'ignore'");
  CHECK_EQ(refusal("eval: {best: val.loss}\n"),
           "config.yaml:3:8: unknown key 'best' in eval; did you mean checkpoint.best?");
  CHECK_EQ(refusal("checkpoint: {save_total_limit: 2}\n"),
           "config.yaml:3:14: unknown key 'save_total_limit' in checkpoint; did you mean 'keep'?");
}

TEST_CASE("weights to start from") {
  CHECK(parse("").init_from.file.empty());
  CHECK(with_init("null").init_from.file.empty());
  const InitFromConfig file = with_init("a.safetensors").init_from;
  CHECK_EQ(file.file, "a.safetensors");
  CHECK(file.strict);
  CHECK_EQ(file.where, "config.yaml:1:43");
  const InitFromConfig mapped =
      with_init("{file: runs/a, strict: false, rename: {'*.gamma': a, module.*: '*', 'fc.*': null, \"a b\": c}}")
          .init_from;
  CHECK_FALSE(mapped.strict);
  CHECK_EQ(mapped.rename, TextPairs{{"*.gamma", "a"}, {"module.*", "*"}, {"fc.*", ""}, {"a b", "c"}});
}

TEST_CASE("weights to start from are refused with their place") {
  CHECK_EQ(model_refusal("{strict: true}"), "config.yaml:1:43: model.init_from: missing key 'file'");
  CHECK_EQ(model_refusal("{file: a, rename: {a.*: b}}"),
           "config.yaml:1:61: model.init_from.rename 'a.*: b': a * must end both names or neither");
  CHECK_EQ(model_refusal("{file: a, rename: [a]}"),
           "config.yaml:1:61: model.init_from.rename: expected a map {name: name}, found a list");
  CHECK_EQ(model_refusal("{file: a, rename: {a: [b]}}"),
           "config.yaml:1:65: model.init_from.rename.a: expected a text, found a list");
  CHECK(model_refusal("{file: a, rename: {a: b, a: c}}").starts_with("config.yaml:1:"));
  CHECK_EQ(message("model: {layers: [{linear: 2}], pretrained: a}\ndata: {train: {kind: toy}}\n"),
           "config.yaml:1:32: unknown key 'pretrained' in model; did you mean 'init_from'?");
}

TEST_CASE("a printed config says again where its weights come from") {
  const Config config = with_init("{file: \"a b.safetensors\", rename: {'*': 'net.*', \"x: y\": null}, strict: false}");
  const Config again = parse_config(to_yaml(config), "config.yaml", {});
  CHECK_EQ(again.init_from.file, "a b.safetensors");
  CHECK_EQ(again.init_from.rename, config.init_from.rename);
  CHECK_FALSE(again.init_from.strict);
  CHECK_EQ(to_yaml(again), to_yaml(config));
  CHECK(to_yaml(with_init("null")).find("init_from: null") != std::string::npos);
}
