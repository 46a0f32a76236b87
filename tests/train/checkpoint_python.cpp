// Tensor files against other readers and writers: a plain one in Python, and the safetensors package with PyTorch.
#include <doctest/doctest.h>

#include "checkpoint_support.h"
#include "core/error.h"
#include "nn/network.h"
#include "support/python.h"
#include "train/checkpoint/init_from.h"
#include "train/checkpoint/tensor_writer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Outcome run_script(const std::string& python, const std::string& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{python, LOCKSTEP_SOURCE_DIR "/tests/train/python/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process(command, 120);
}

std::string write(const TempDir& dir, const std::string& name, const std::vector<TensorSource>& tensors) {
  write_tensor_file(Directory::open(dir.path()), name, tensors);
  return dir.path() + "/" + name;
}

std::vector<TensorSource> every_type() {
  return {floats("w", {2, 1}, {1, -2}),
          floats("\xC3\xA4 \"x\"", {}, {0.5F}),
          tensor<double>("d", TensorType::f64, {1}, {0.1}),
          tensor<uint16_t>("h", TensorType::f16, {2}, {0x3c00, 0xfc00}),
          tensor<uint16_t>("b", TensorType::bf16, {1}, {0x3f80}),
          tensor<int64_t>("n", TensorType::i64, {}, {7}),
          tensor<int32_t>("i", TensorType::i32, {1}, {-1}),
          tensor<uint8_t>("u", TensorType::u8, {3}, {0, 128, 255}),
          floats("empty", {0, 3}, {})};
}

// The layers of packages.py.
Network network(Backend& backend) {
  ModelSpec spec;
  spec.layers.resize(5);
  spec.layers[0] = {.kind = "conv2d", .out = 3, .kernel = {3, 3}, .padding = {1, 1}};
  spec.layers[1].kind = "batch_norm";
  spec.layers[2].kind = "relu";
  spec.layers[3].kind = "flatten";
  spec.layers[4] = {.kind = "linear", .out = 5};
  return {spec, {1, 4, 4}, backend, 4};
}

std::vector<TensorSource> state_dict(const ParameterStore& store) {
  std::vector<TensorSource> tensors;
  const auto dims = [](const Shape& shape) { return std::vector<int64_t>(shape.dims().begin(), shape.dims().end()); };
  for (size_t id = 0; id < store.parameters().size(); ++id) {
    const Parameter& p = store.parameters()[id];
    tensors.push_back(floats(p.name, dims(p.shape), store.canonical_value(static_cast<ParameterId>(id))));
  }
  for (size_t id = 0; id < store.buffers().size(); ++id) {
    const ModelBuffer& b = store.buffers()[id];
    const std::span<const float> values = store.buffer(static_cast<BufferId>(id));
    if (b.name.ends_with("num_batches_tracked")) {
      tensors.push_back(tensor<int64_t>(b.name, TensorType::i64, {}, {static_cast<int64_t>(values[0])}));
    } else {
      tensors.push_back(floats(b.name, dims(b.shape), {values.begin(), values.end()}));
    }
  }
  return tensors;
}

}  // namespace

TEST_CASE("a reader made from the description of the format reads a tensor file") {
  const TempDir dir;
  const std::string python = python_with({"json"});
  if (python.empty()) return;
  const Outcome outcome = run_script(python, "plain_reader.py", {write(dir, "a.safetensors", every_type())});
  CHECK_EQ(outcome.output,
           "metadata {\"format\": \"pt\"}\n"
           "b BF16 [1] 803f\n"
           "d F64 [1] 9a9999999999b93f\n"
           "empty F32 [0, 3] \n"
           "h F16 [2] 003c00fc\n"
           "i I32 [1] ffffffff\n"
           "n I64 [] 0700000000000000\n"
           "u U8 [3] 0080ff\n"
           "w F32 [2, 1] 0000803f000000c0\n"
           "\xC3\xA4 \"x\" F32 [] 0000003f\n");
}

TEST_CASE("the safetensors package reads and writes the same bytes") {
  const std::string python = python_with({"safetensors.torch", "torch"});
  if (python.empty()) return;
  const TempDir dir;
  const std::string ours = write(dir, "ours.safetensors", every_type()), theirs = dir.path() + "/theirs.safetensors";
  const Outcome outcome = run_script(python, "packages.py", {"resave", ours, theirs});
  CHECK_EQ(outcome.output, "");
  CHECK_EQ(file_bytes(theirs), file_bytes(ours));
}

TEST_CASE("the state dict of an nn.Sequential loads here and ours loads there") {
  const std::string python = python_with({"safetensors.torch", "torch"});
  if (python.empty()) return;
  const TempDir dir;
  const std::string theirs = dir.path() + "/theirs.safetensors";
  REQUIRE_EQ(run_script(python, "packages.py", {"sequential", theirs}).output, "");
  const auto backend = make_cpu_backend({.threads = 1, .flush_denormals = false});
  Network net = network(*backend);
  net.lay_out([](size_t bytes) { return Buffer::host(bytes); });
  const InitReport report = init_from(TensorFile::read(theirs), {}, net.store());
  CHECK_EQ(report.parameters, 6);
  CHECK_EQ(report.buffers, 3);
  CHECK_EQ(net.store().buffer(2)[0], 3);  // batches seen
  const std::string ours = write(dir, "ours.safetensors", state_dict(net.store()));
  const Outcome outcome = run_script(python, "packages.py", {"same", theirs, ours});
  CHECK_EQ(outcome.exit_code, 0);
  CHECK(outcome.says("the same: "));
}
