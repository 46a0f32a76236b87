#include "train/inspect/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "nn/builder.h"
#include "nn/flops.h"
#include "train/translate.h"

namespace lockstep {
namespace {

const Shape& input_of(const BuiltNode& node, const std::vector<BuiltNode>& nodes, const Shape& sample) {
  const int first = node.inputs[0];
  return first == kNetworkInput ? sample : nodes[static_cast<size_t>(first)].sample_shape;
}

}  // namespace

ModelTable model_table(const Config& config, const Shape& sample) {
  const ModelSpec model = model_spec(config);
  const std::vector<BuiltNode> nodes = build_layers(model, sample);
  const Freeze frozen = frozen_parameters(config);
  ModelTable table{.sample = sample, .layers = {}};
  std::vector<bool> trains_upstream;  // of each node's output: something that trains lies at or before it
  for (size_t i = 0; i < nodes.size(); ++i) {
    const BuiltNode& node = nodes[i];
    LayerRow row{.name = node.name, .kind = std::string(node.layer->kind()), .output = node.sample_shape};
    for (const ParameterSpec& spec : node.layer->parameters()) {
      const Parameter parameter{.name = node.name + "." + spec.name, .shape = spec.shape, .format = nullptr};
      row.parameters += spec.shape.numel();
      if (!frozen(parameter, is_norm(*node.layer))) row.trainable += spec.shape.numel();
    }
    const bool input_trains = std::ranges::any_of(
        node.inputs, [&](int input) { return input != kNetworkInput && trains_upstream[static_cast<size_t>(input)]; });
    row.forward = forward_flops(model.layers[i], input_of(node, nodes, sample), node.sample_shape);
    row.training = row.forward * (1 + (row.trainable > 0 ? 1 : 0) + (input_trains ? 1 : 0));
    trains_upstream.push_back(input_trains || row.trainable > 0);
    table.layers.push_back(std::move(row));
  }
  return table;
}

LayerRow ModelTable::total() const {
  LayerRow sum{.name = "total", .kind = "", .output = layers.back().output};
  for (const LayerRow& row : layers) {
    sum.parameters += row.parameters;
    sum.trainable += row.trainable;
    sum.forward += row.forward;
    sum.training += row.training;
  }
  return sum;
}

std::string flops_text(int64_t flops) {
  static constexpr std::array<const char*, 5> kUnits{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  auto value = static_cast<double>(flops);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : value < 10 ? 2 : 1, kUnits[unit]);
}

std::string model_text(const ModelTable& table) {
  size_t width = 6, kind_width = 6, shape_width = 12;
  for (const LayerRow& row : table.layers) {
    width = std::max(width, row.name.size());
    kind_width = std::max(kind_width, row.kind.size());
    shape_width = std::max(shape_width, row.output.str().size());
  }
  std::string text;
  auto out = std::back_inserter(text);
  const auto add = [&](const LayerRow& row) {
    fmt::format_to(out, "{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>12}  {:>14}  {:>14}\n", row.name, width, row.kind,
                   kind_width, row.output.str(), shape_width, row.parameters, row.trainable, row.forward, row.training);
  };
  fmt::format_to(out, "{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>12}  {:>14}  {:>14}\n", "layer", width, "kind", kind_width,
                 "output", shape_width, "parameters", "trainable", "FLOPs forward", "FLOPs training");
  fmt::format_to(out, "{:<{}}  {:<{}}  {}\n", "input", width, "", kind_width, table.sample.str());
  for (const LayerRow& row : table.layers) add(row);
  const LayerRow total = table.total();
  add(total);
  fmt::format_to(out, "{} parameters, {} trainable, {} frozen; per sample {} forward, about {} in a training step\n",
                 total.parameters, total.trainable, total.parameters - total.trainable, flops_text(total.forward),
                 flops_text(total.training));
  return text;
}

}  // namespace lockstep
