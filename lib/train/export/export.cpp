#include "train/export/export.h"

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "nn/builder.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/checkpoint/tensor_writer.h"
#include "train/export/onnx_layers.h"
#include "train/translate.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Directory folder_of(const fs::path& path) {
  return Directory::open(path.has_parent_path() ? path.parent_path().string() : ".");
}

std::vector<std::pair<std::string, std::string>> facts(const SavedRun& run) {
  const DatasetConfig& data = run.config.data.train;
  std::vector<std::pair<std::string, std::string>> all{{"lockstep.step", std::to_string(run.step)},
                                                       {"lockstep.loss", run.config.train.loss}};
  if (data.mean) all.emplace_back("lockstep.normalize.mean", fmt::format("{}", *data.mean));
  if (data.std) all.emplace_back("lockstep.normalize.std", fmt::format("{}", *data.std));
  return all;
}

}  // namespace

std::string export_onnx(const SavedRun& run, const Shape& sample, const std::string& path) {
  const ModelSpec model = model_spec(run.config);
  const std::vector<BuiltNode> nodes = build_layers(model, sample);
  const TensorFile& weights = evaluated_weights(*run.checkpoint, run.config);
  OnnxGraph graph(sample);
  std::vector<std::string> values;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string> inputs;
    for (const int input : nodes[i].inputs)
      inputs.push_back(input == kNetworkInput ? OnnxGraph::kInput : values[static_cast<size_t>(input)]);
    const int first = nodes[i].inputs[0];
    const Shape& in = first == kNetworkInput ? sample : nodes[static_cast<size_t>(first)].sample_shape;
    values.push_back(add_layer(graph, {.spec = model.layers[i],
                                       .name = nodes[i].name,
                                       .inputs = std::move(inputs),
                                       .input = in,
                                       .output = nodes[i].sample_shape,
                                       .weights = weights}));
  }
  graph.finish(values.back(), nodes.back().sample_shape, facts(run));
  const fs::path file(path);
  folder_of(file).replace_text(file.filename().string(), graph.bytes());
  const Shape& output = nodes.back().sample_shape;
  return fmt::format("{}: ONNX, opset {}, {} [{}, {}], {} [{}, {}]", path, kOnnxOpset, OnnxGraph::kInput,
                     OnnxGraph::kBatch, fmt::join(sample.dims(), ", "), OnnxGraph::kOutput, OnnxGraph::kBatch,
                     fmt::join(output.dims(), ", "));
}

std::string export_safetensors(const SavedRun& run, const std::string& path) {
  const TensorFile& weights = evaluated_weights(*run.checkpoint, run.config);
  std::vector<TensorSource> tensors;
  for (const auto& [name, entry] : weights.entries()) {
    tensors.push_back(
        {.name = name, .type = entry.type, .shape = entry.shape, .copy_to = [&](std::span<std::byte> out) {
           const auto bytes = weights.bytes(entry);
           if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
         }});
  }
  const fs::path file(path);
  const Directory folder = folder_of(file);
  const std::string name = file.filename().string(), growing = name + std::string(kGrowing);
  folder.remove(growing);
  write_tensor_file(folder, growing, tensors);
  folder.rename(growing, name);
  folder.flush();
  return fmt::format("{}: {} tensors", path, tensors.size());
}

}  // namespace lockstep
