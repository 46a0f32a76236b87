// model.init_from: what is loaded under which name, what is refused, what is told about it.
#include <doctest/doctest.h>

#include "checkpoint_support.h"
#include "config_support.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/checkpoint/init_from.h"
#include "train/checkpoint/tensor_writer.h"
#include "train/config_value.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Model {
  ParameterStore store;
  Model() {
    const std::vector<ParameterId> order{store.add_parameter("fc.weight", {2, 2}), store.add_parameter("fc.bias", {2})};
    store.add_buffer("bn.running_mean", {2});
    store.add_buffer("bn.num_batches_tracked", Shape{});
    store.freeze(1);
    store.lay_out(order, [](size_t bytes) { return Buffer::host(bytes); });
    for (const ParameterId id : order) std::ranges::fill(store.value(id), 9.0F);
    for (const BufferId id : {0, 1}) std::ranges::fill(store.buffer(id), 9.0F);
  }
  // fc.weight, fc.bias, bn.running_mean, bn.num_batches_tracked
  std::vector<float> values() const {
    std::vector<float> all = store.canonical_value(0);
    for (const float x : store.canonical_value(1)) all.push_back(x);
    for (const BufferId id : {0, 1}) all.insert(all.end(), store.buffer(id).begin(), store.buffer(id).end());
    return all;
  }
};

const std::vector<float> kNothing(9, 9.0F), kAll{1, 2, 3, 4, 5, 6, 7, 8, 3};

std::vector<TensorSource> tensors(const std::string& prefix = "") {
  return {floats(prefix + "fc.weight", {2, 2}, {1, 2, 3, 4}), floats(prefix + "fc.bias", {2}, {5, 6}),
          floats(prefix + "bn.running_mean", {2}, {7, 8}),
          tensor<int64_t>(prefix + "bn.num_batches_tracked", TensorType::i64, {}, {3})};
}

struct Weights {
  TempDir dir;
  std::string path = dir.path() + "/w.safetensors";
  explicit Weights(const std::vector<TensorSource>& content) {
    write_tensor_file(Directory::open(dir.path()), "w.safetensors", content);
  }
};

InitFromConfig settings(TextPairs rename = {}, bool strict = true) {
  return {.file = "f", .rename = std::move(rename), .strict = strict, .where = "config.yaml:3:1"};
}

InitReport load(Model& model, const std::vector<TensorSource>& content, const InitFromConfig& config = settings()) {
  return init_from(TensorFile::read(Weights(content).path), config, model.store);
}

std::string refusal(const std::vector<TensorSource>& content, const InitFromConfig& config = settings()) {
  Model model;
  const std::string message = error_of([&] { load(model, content, config); });
  CHECK_EQ(model.values(), message == "no error" ? kAll : kNothing);  // all or nothing
  return message;
}

}  // namespace

TEST_CASE("weights are loaded by name into parameters and buffers") {
  Model model;
  const uint64_t version = model.store.version();
  const InitReport report = load(model, tensors());
  CHECK_EQ(model.values(), kAll);
  CHECK_GT(model.store.version(), version);
  CHECK_EQ(report.parameters, 2);
  CHECK_EQ(report.buffers, 2);
  CHECK_EQ(report.values, 9);
  CHECK(has(report.text(), "w.safetensors: 2 parameters and 2 buffers loaded (9 values)"));
}

TEST_CASE("half precision and double weights are converted") {
  Model model;
  auto content = tensors();
  content[0] = tensor<uint16_t>("fc.weight", TensorType::f16, {2, 2}, {0x3c00, 0x4000, 0x4200, 0x4400});
  content[1] = tensor<double>("fc.bias", TensorType::f64, {2}, {5, 6});
  load(model, content);
  CHECK_EQ(model.values(), kAll);
}

TEST_CASE("names are mapped") {
  Model model;
  load(model, tensors("module.net."), settings({{"module.net.*", "*"}}));
  CHECK_EQ(model.values(), kAll);
  auto content = tensors();
  content[0].name = "head.w";
  CHECK_EQ(refusal(content, settings({{"head.w", "fc.weight"}})), "no error");
  content[0].name = "other";
  CHECK_EQ(refusal(content, settings({{"other", "fc.weight"}, {"*", "*"}})), "no error");
  content = tensors();
  content.push_back(floats("teacher.a", {1}, {1}));
  CHECK_EQ(refusal(content, settings({{"teacher.*", ""}})), "no error");
  CHECK(
      has(refusal(content, settings({{"teacher.a", "fc.bias"}})), "'fc.bias' and 'teacher.a' would both be 'fc.bias'"));
}

TEST_CASE("strictly nothing is missing and nothing left over") {
  auto content = tensors();
  content.pop_back();
  Model model;
  CHECK_EQ(load(model, content).missing, std::vector<std::string>{"bn.num_batches_tracked"});  // as in old files
  content.erase(content.begin());
  content.push_back(floats("head.weight", {1}, {1}));
  const std::string message = refusal(content);
  CHECK(message.starts_with("config.yaml:3:1: model.init_from: "));
  CHECK(has(message, "does not fit the model; it lacks fc.weight; it has head.weight, which the model has not"));
}

TEST_CASE("without strict the rest keeps its values and is reported") {
  Model model;
  auto content = tensors();
  content.erase(content.begin());
  for (int i = 0; i < 8; ++i) content.push_back(floats(fmt::format("head.{}", i), {1}, {1}));
  const InitReport report = load(model, content, settings({{"head.7", ""}}, false));
  CHECK_EQ(model.values(), std::vector<float>{9, 9, 9, 9, 5, 6, 7, 8, 3});
  CHECK(has(report.text(),
            "\n  not in the file, left as initialised: fc.weight\n"
            "  not in the model: head.0, head.1, head.2, head.3, head.4, head.5 and 1 more\n"
            "  left out: head.7"));
}

TEST_CASE("another shape is an error whether strict or not") {
  for (const bool strict : {true, false}) {
    auto content = tensors();
    content[0] = floats("fc.weight", {4}, {1, 2, 3, 4});
    CHECK(has(refusal(content, settings({}, strict)), "'fc.weight': the model's shape is [2, 2], found [4]"));
  }
}

TEST_CASE("weights come from a file or from a checkpoint") {
  const TempDir dir;
  const CheckpointFolder folder(dir.path() + "/checkpoints", {});
  folder.prepare();
  Snapshot made{.step = 7, .state = {}, .config = "", .tensors = {}};
  made.tensors["model"] = tensors();
  made.tensors["ema"] = tensors();
  made.tensors["ema"][1] = floats("fc.bias", {2}, {50, 60});
  const std::string path = folder.write(made, true);
  for (const std::string& file : {path, path + "/model.safetensors", dir.path() + "/checkpoints/best", dir.path()}) {
    Model model;
    init_from(parse("", {"model.init_from=\"" + file + "\""}), model.store);
    CHECK_EQ(model.values(), kAll);
  }
  Model model;
  init_from(parse("", {"model.init_from={file: \"" + path + "/ema.safetensors\"}"}), model.store);
  CHECK_EQ(model.values()[4], 50);
  const Config missing = parse("", {"model.init_from={file: /nowhere.safetensors}"});
  CHECK_EQ(error_of([&] { init_from(missing, model.store); }),
           "--set model.init_from: model.init_from: /nowhere.safetensors: is missing");
}
