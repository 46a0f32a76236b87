// The printed config is accepted, means the same and prints the same; the locale changes nothing; the reference is
// kept.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <locale>

#include "config_examples.h"
#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

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

TEST_CASE("docs config.md is the reference made from the table of keys") {
  check_page("docs/config.md", config_reference());
}

TEST_CASE("the reference names every key of a printed config") {
  const std::string reference = config_reference();
  for (const char* key :
       {"`global_batch_size`", "`learning_rate`", "`betas`", "`normalize`", "`schedules`", "`count_include_pad`"}) {
    CAPTURE(key);
    CHECK_EQ(reference.find(key) != std::string::npos, std::string(key) != "`learning_rate`");  // a synonym is no key
  }
}
