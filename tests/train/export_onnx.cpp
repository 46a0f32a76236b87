// ONNX files: their structure, and that onnxruntime computes from them what the network computes, for every layer kind.
// The latter where a Python has onnx and onnxruntime.
#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <set>

#include "checkpoint_support.h"
#include "core/rng.h"
#include "nn/builder.h"
#include "nn/network.h"
#include "support/python.h"
#include "support/saved_command.h"
#include "train/checkpoint/model_tensors.h"
#include "train/export/export.h"
#include "train/translate.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// A model with parameters and statistics of no special values, as a checkpoint, with samples and its outputs for them.
struct Model {
  TempDir dir;
  SavedRun run;
  std::vector<float> x, y;
  Shape output;
  static constexpr int64_t kSamples = 4;

  Model(const std::string& layers, const Shape& sample, const std::string& more = "") {
    const Config config =
        parse_config("model: {layers: [" + layers + "]}\ndata: {train: {kind: toy}}\n" + more, "m.yaml", {});
    const auto backend = make_cpu_backend({.threads = 1});
    Network network(model_spec(config), sample, *backend, kSamples);
    network.lay_out(Buffer::host);
    Generator generator(7);
    network.initialize(generator);
    const auto wave = [](size_t i) { return std::sin(static_cast<float>(3 * i + 1)); };
    ParameterStore& store = network.store();
    for (size_t id = 0; id < store.parameters().size(); ++id) {
      std::vector<float> values = store.canonical_value(static_cast<ParameterId>(id));
      for (size_t i = 0; i < values.size(); ++i) values[i] += 0.1F * wave(i + id);
      store.set_canonical(static_cast<ParameterId>(id), values);
    }
    for (size_t id = 0; id < store.buffers().size(); ++id) {
      const std::span<float> values = store.buffer(static_cast<BufferId>(id));
      for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + 0.4F * wave(i + id);
    }
    for (int64_t i = 0; i < kSamples * sample.numel(); ++i) x.push_back(1.5F * wave(static_cast<size_t>(7 * i)));
    Graph& graph = network.graph(Phase::inference, kSamples);
    graph.forward(x.data(), {});
    const auto outputs = graph.output().span();
    y.assign(outputs.begin(), outputs.end());
    output = network.output_shape();

    Snapshot snapshot{.step = 1, .state = {}, .config = to_yaml(config), .tensors = {}};
    snapshot.state.set("step", int64_t{1});
    snapshot.state.set("sample_shape", std::vector<int64_t>(sample.dims().begin(), sample.dims().end()));
    add_parameter_tensors(store, {{}, store.values()}, "", snapshot.tensors["model"]);
    add_buffer_tensors(store, {{}, store.buffer_values()}, "", snapshot.tensors["model"]);
    const CheckpointFolder folder(dir.path() + "/checkpoints", {});
    folder.prepare();
    run = read_saved_run(folder.write(snapshot, false), {});
    export_onnx(run, sample_shape(run), dir.path() + "/model.onnx");
  }

  onnx::ModelProto read() const {
    onnx::ModelProto model;
    REQUIRE(model.ParseFromString(file_bytes(dir.path() + "/model.onnx")));
    return model;
  }

  std::string path(const char* name) const { return dir.path() + "/" + name; }
};

std::vector<int64_t> with_batch(const Shape& sample) {
  const Shape all = sample.with_front(Model::kSamples);
  return {all.dims().begin(), all.dims().end()};
}

void check_runtime_agrees(const std::string& python, const std::string& layers, const Shape& sample) {
  CAPTURE(layers);
  const Model model(layers, sample);
  write_npy(model.path("x.npy"), with_batch(sample), model.x);
  write_npy(model.path("y.npy"), with_batch(model.output), model.y);
  const Outcome outcome = run_process({python, LOCKSTEP_SOURCE_DIR "/tests/train/python/onnx_outputs.py",
                                       model.path("model.onnx"), model.path("x.npy"), model.path("y.npy")},
                                      120);
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.output);
  MESSAGE(layers, ": ", outcome.output);
  CHECK(std::stod(outcome.output) < 2e-6);
}

}  // namespace

TEST_CASE("onnx: inputs opset constants and nodes are those of the model") {
  const Model model(
      "{conv2d: {out: 3, kernel: 3, stride: 2, padding: 1}, name: conv}, {dropout: 0.5}, relu, flatten, {linear: 5, "
      "name: fc}",
      {2, 7, 7}, "train: {epochs: 1}\n");
  const onnx::ModelProto file = model.read();
  CHECK(file.ir_version() == 8);
  CHECK(file.opset_import(0).version() == 17);
  CHECK(file.producer_name() == "lockstep");
  const onnx::GraphProto& graph = file.graph();
  REQUIRE(graph.input_size() == 1);
  CHECK(graph.input(0).name() == "input");
  const auto& shape = graph.input(0).type().tensor_type().shape();
  REQUIRE(shape.dim_size() == 4);
  CHECK(shape.dim(0).dim_param() == "batch");
  CHECK(shape.dim(1).dim_value() == 2);
  CHECK(graph.output(0).name() == "output");
  CHECK(graph.output(0).type().tensor_type().shape().dim(1).dim_value() == 5);
  std::vector<std::string> ops;
  for (const auto& node : graph.node()) ops.push_back(node.op_type());
  CHECK(ops == std::vector<std::string>{"Conv", "Relu", "Flatten", "Gemm", "Identity"});
  std::set<std::string> constants;
  for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
  CHECK(constants == std::set<std::string>{"conv.weight", "conv.bias", "fc.weight", "fc.bias"});
  for (const auto& tensor : graph.initializer()) {
    const std::vector<float> expected = model.run.checkpoint->file("model").floats(tensor.name());
    REQUIRE(tensor.raw_data().size() == expected.size() * sizeof(float));
    CHECK(std::memcmp(tensor.raw_data().data(), expected.data(), tensor.raw_data().size()) == 0);
  }
}

TEST_CASE("onnx: every layer kind has a form and the same model gives the same bytes") {
  std::set<std::string> exported;
  for (const std::string& kind : layer_kinds()) {
    std::string entry = kind;
    if (kind == "linear") entry = "flatten, {linear: 3}";
    if (kind == "conv2d") entry = "{conv2d: {out: 4, kernel: 3}}";
    if (kind == "add") entry = "{relu: {}, name: a}, tanh, {add: a}";
    if (kind == "group_norm") entry = "{group_norm: {groups: 2}}";
    if (kind.starts_with("adaptive")) entry = "{" + kind + ": 2}";
    if (kind.ends_with("pool2d") && !kind.starts_with("adaptive")) entry = "{" + kind + ": 2}";
    const std::string layers = "{conv2d: {out: 4, kernel: 1}}, " + entry;
    CAPTURE(layers);
    const Model model(layers, {2, 5, 5});
    const std::string bytes = file_bytes(model.path("model.onnx"));
    CHECK(model.read().graph().node_size() >= 2);
    export_onnx(model.run, {2, 5, 5}, model.path("again.onnx"));
    CHECK(file_bytes(model.path("again.onnx")) == bytes);
    exported.insert(kind);
  }
  CHECK(exported.size() == layer_kinds().size());
}

TEST_CASE("onnx: a safetensors export has the checkpoint's tensors in the same bytes") {
  const Model model("{linear: 3}, batch_norm, {linear: 2}", {4});
  export_safetensors(model.run, model.path("w.safetensors"));
  CHECK(file_bytes(model.path("w.safetensors")) == file_bytes(model.run.path + "/model.safetensors"));
}

TEST_CASE("onnx: onnxruntime computes what convolutions and linear layers compute") {
  const std::string python = python_with({"onnx", "onnxruntime", "numpy"});
  if (python.empty()) return;
  check_runtime_agrees(
      python,
      "{conv2d: {out: 6, kernel: [3, 2], stride: [2, 1], padding: [1, 0], dilation: [1, 2]}}, relu, {conv2d: {out: 4, "
      "kernel: 3, groups: 2, bias: false}}, flatten, {linear: 7}, {linear: {out: 3, bias: false}}",
      {2, 12, 11});
  check_runtime_agrees(
      python,
      "{conv2d: {out: 4, kernel: 3, padding: 1}, name: a}, relu, {conv2d: {out: 4, kernel: 3, padding: 1}}, {add: a}, "
      "{dropout: 0.3}, flatten, {linear: 5}, softmax",
      {1, 6, 6});
}

TEST_CASE("onnx: onnxruntime computes what activations compute") {
  const std::string python = python_with({"onnx", "onnxruntime", "numpy"});
  if (python.empty()) return;
  check_runtime_agrees(
      python,
      "{linear: 9}, {leaky_relu: {negative_slope: 0.2}}, {linear: 9}, gelu, {linear: 9}, tanh, {linear: 9}, sigmoid, "
      "{linear: 4}",
      {6});
  check_runtime_agrees(python, "{linear: 9}, {gelu: {tanh_approximation: true}}, {linear: 4}, softmax", {6});
  check_runtime_agrees(python, "{conv2d: {out: 4, kernel: 1}}, softmax", {2, 3, 3});
}

TEST_CASE("onnx: onnxruntime computes what norms compute") {
  const std::string python = python_with({"onnx", "onnxruntime", "numpy"});
  if (python.empty()) return;
  check_runtime_agrees(
      python,
      "{conv2d: {out: 4, kernel: 3}}, batch_norm, relu, {group_norm: {groups: 2}}, {layer_norm: {shape: [5]}}, "
      "flatten, {linear: 6}, batch_norm, layer_norm, {group_norm: {groups: 3}}",
      {2, 7, 7});
  check_runtime_agrees(
      python,
      "{conv2d: {out: 4, kernel: 3}}, {batch_norm: {affine: false, eps: 0.01}}, {group_norm: {groups: 4, affine: "
      "false}}, {layer_norm: {affine: false}}",
      {2, 7, 7});
}

TEST_CASE("onnx: onnxruntime computes what pools compute") {
  const std::string python = python_with({"onnx", "onnxruntime", "numpy"});
  if (python.empty()) return;
  for (const std::string ceil : {"false", "true"}) {
    for (const std::string kernel :
         {"kernel: 2", "kernel: 3, stride: 2, padding: 1", "kernel: [3, 2], stride: [3, 2], padding: [1, 1]"}) {
      check_runtime_agrees(
          python, "{conv2d: {out: 3, kernel: 1}}, {max_pool2d: {" + kernel + ", ceil_mode: " + ceil + "}}", {2, 10, 8});
      for (const std::string counted : {"false", "true"})
        check_runtime_agrees(python,
                             "{conv2d: {out: 3, kernel: 1}}, {avg_pool2d: {" + kernel + ", ceil_mode: " + ceil +
                                 ", count_include_pad: " + counted + "}}",
                             {2, 10, 8});
    }
  }
  for (const std::string window : {"kernel: 2, stride: 1, dilation: 3",
                                   "kernel: [3, 2], stride: [2, 3], padding: 1, dilation: [2, 3], ceil_mode: true"})
    check_runtime_agrees(python, "{conv2d: {out: 3, kernel: 1}}, {max_pool2d: {" + window + "}}", {2, 10, 8});
  for (const std::string kind : {"adaptive_avg_pool2d", "adaptive_max_pool2d"}) {
    for (const std::string size : {"1", "[3, 4]", "5"})
      check_runtime_agrees(python, "{conv2d: {out: 3, kernel: 1}}, {" + kind + ": " + size + "}", {2, 10, 8});
  }
}
