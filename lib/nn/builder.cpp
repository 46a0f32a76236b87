#include "nn/builder.h"

#include <algorithm>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace lockstep {
namespace {

struct LayerKind {
  const char* name;
  LayerPtr (*make)(const LayerSpec& spec, uint64_t layer_id);
};

template <LayerPtr (*make)(const LayerSpec&)>
LayerPtr without_id(const LayerSpec& spec, uint64_t) {
  return make(spec);
}

constexpr LayerKind kKinds[] = {
    {"linear", without_id<make_linear>},
    {"conv2d", without_id<make_conv2d>},
    {"relu", without_id<make_relu>},
    {"leaky_relu", without_id<make_leaky_relu>},
    {"gelu", without_id<make_gelu>},
    {"tanh", without_id<make_tanh>},
    {"sigmoid", without_id<make_sigmoid>},
    {"softmax", without_id<make_softmax>},
    {"max_pool2d", without_id<make_max_pool2d>},
    {"avg_pool2d", without_id<make_avg_pool2d>},
    {"adaptive_avg_pool2d", without_id<make_adaptive_avg_pool2d>},
    {"adaptive_max_pool2d", without_id<make_adaptive_max_pool2d>},
    {"batch_norm", without_id<make_batch_norm>},
    {"layer_norm", without_id<make_layer_norm>},
    {"group_norm", without_id<make_group_norm>},
    {"flatten", without_id<make_flatten>},
    {"add", without_id<make_add>},
    {"dropout", make_dropout},
};

std::string prefix(const LayerSpec& spec) { return spec.where.empty() ? "" : spec.where + ": "; }

LayerPtr make_layer(const LayerSpec& spec, uint64_t id) {
  if (spec.make) return spec.make(spec);
  const auto* kind = std::ranges::find_if(kKinds, [&](const LayerKind& k) { return spec.kind == k.name; });
  if (kind == std::end(kKinds))
    throw_error("{}unknown layer kind '{}'; known: {}", prefix(spec), spec.kind, fmt::join(layer_kinds(), ", "));
  return kind->make(spec, id);
}

// The node a reference means: "" is the entry before, "input" the network's input.
int resolve(const std::string& reference, const std::vector<BuiltNode>& nodes, const LayerSpec& spec) {
  if (reference.empty()) return static_cast<int>(nodes.size()) - 1;
  if (reference == "input") return kNetworkInput;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name == reference) return static_cast<int>(i);
  }
  throw_error("{}layer '{}' reads '{}', but no earlier layer has this name", prefix(spec), spec.kind, reference);
}

}  // namespace

std::vector<std::string> layer_kinds() {
  std::vector<std::string> names;
  for (const LayerKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::vector<BuiltNode> build_layers(const ModelSpec& spec, const Shape& sample) {
  std::vector<BuiltNode> nodes;
  for (const LayerSpec& entry : spec.layers) {
    BuiltNode node;
    node.name = entry.name.empty() ? std::to_string(nodes.size()) : entry.name;
    node.inputs.push_back(resolve(entry.input, nodes, entry));
    if (entry.kind == "add") node.inputs.push_back(resolve(entry.add, nodes, entry));
    std::vector<Shape> shapes;
    for (int input : node.inputs)
      shapes.push_back(input == kNetworkInput ? sample : nodes[static_cast<size_t>(input)].sample_shape);
    node.layer = make_layer(entry, nodes.size());
    node.sample_shape = node.layer->infer(shapes);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace lockstep
