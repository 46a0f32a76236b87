#include "train/export/onnx_layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace lockstep {
namespace {

std::vector<int64_t> dims(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

// A tensor of the checkpoint as a constant of the same name.
std::string parameter(OnnxGraph& graph, const OnnxLayer& layer, const char* which, const Shape& shape) {
  const std::string name = layer.name + "." + which;
  const TensorFile::Entry* entry = layer.weights.find(name);
  if (entry == nullptr) throw_error("{}: holds no '{}'", layer.weights.path(), name);
  if (!std::ranges::equal(entry->shape, shape.dims()))
    throw_error("{}: tensor '{}': expected the shape {}, found [{}]", layer.weights.path(), name, shape.str(),
                fmt::join(entry->shape, ", "));
  return graph.constant(name, shape.dims(), layer.weights.floats(name));
}

// A norm's weight or bias, or what stands for the one it has not.
std::string affine(OnnxGraph& graph, const OnnxLayer& layer, const char* which, const Shape& shape) {
  if (layer.spec.affine) return parameter(graph, layer, which, shape);
  const std::vector<float> values(static_cast<size_t>(shape.numel()),
                                  which == std::string_view("weight") ? 1.0F : 0.0F);
  return graph.constant(layer.name + "." + which, shape.dims(), values);
}

std::string linear(OnnxGraph& graph, const OnnxLayer& layer) {
  std::vector<std::string> inputs{layer.inputs[0],
                                  parameter(graph, layer, "weight", {layer.spec.out, layer.input.numel()})};
  if (layer.spec.bias) inputs.push_back(parameter(graph, layer, "bias", {layer.spec.out}));
  return graph.node("Gemm", inputs, layer.name).set("transB", int64_t{1}).output();
}

std::string conv2d(OnnxGraph& graph, const OnnxLayer& layer) {
  const LayerSpec& s = layer.spec;
  const Shape weight{s.out, layer.input[0] / s.groups, s.kernel[0], s.kernel[1]};
  std::vector<std::string> inputs{layer.inputs[0], parameter(graph, layer, "weight", weight)};
  if (s.bias) inputs.push_back(parameter(graph, layer, "bias", {s.out}));
  const std::vector<int64_t> pads{s.padding[0], s.padding[1], s.padding[0], s.padding[1]};
  return graph.node("Conv", inputs, layer.name)
      .set("kernel_shape", s.kernel)
      .set("strides", s.stride)
      .set("pads", pads)
      .set("dilations", s.dilation)
      .set("group", s.groups)
      .output();
}

template <const char* const& op>
std::string plain(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.node(op, layer.inputs, layer.name).output();
}

std::string leaky_relu(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.node("LeakyRelu", layer.inputs, layer.name).set("alpha", layer.spec.negative_slope).output();
}

// x / 2 (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)): the operator Gelu came with opset 20.
std::string gelu(OnnxGraph& graph, const OnnxLayer& layer) {
  const std::string& x = layer.inputs[0];
  const auto value = [&](const char* name, double number) {
    return graph.scalar(layer.name + "." + name, static_cast<float>(number));
  };
  const auto node = [&](const char* op, const std::vector<std::string>& inputs) {
    return graph.node(op, inputs, layer.name + "." + op).output();
  };
  std::string inner;
  if (layer.spec.tanh_approximation) {
    const std::string cube = node("Mul", {node("Mul", {x, x}), x});
    const std::string sum = node("Add", {x, node("Mul", {cube, value("cubic", 0.044715)})});
    inner = node("Tanh", {node("Mul", {sum, value("factor", std::sqrt(2 * std::numbers::inv_pi))})});
  } else {
    inner = node("Erf", {node("Mul", {x, value("factor", std::numbers::sqrt2 / 2)})});
  }
  const std::string half = node("Mul", {x, value("half", 0.5)});
  return graph.node("Mul", {half, node("Add", {inner, value("one", 1)})}, layer.name).output();
}

std::string softmax(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.node("Softmax", layer.inputs, layer.name).set("axis", int64_t{1}).output();
}

std::string batch_norm(OnnxGraph& graph, const OnnxLayer& layer) {
  const Shape channels{layer.input[0]};
  const std::vector<std::string> inputs{
      layer.inputs[0], affine(graph, layer, "weight", channels), affine(graph, layer, "bias", channels),
      parameter(graph, layer, "running_mean", channels), parameter(graph, layer, "running_var", channels)};
  return graph.node("BatchNormalization", inputs, layer.name).set("epsilon", layer.spec.eps).output();
}

std::string layer_norm(OnnxGraph& graph, const OnnxLayer& layer) {
  const Shape shape = layer.spec.normalized_shape.empty() ? layer.input : Shape(layer.spec.normalized_shape);
  const std::vector<std::string> inputs{layer.inputs[0], affine(graph, layer, "weight", shape),
                                        affine(graph, layer, "bias", shape)};
  return graph.node("LayerNormalization", inputs, layer.name)
      .set("axis", -int64_t{shape.rank()})
      .set("epsilon", layer.spec.eps)
      .output();
}

// As instances of `groups` channels, since GroupNormalization came with opset 18.
std::string group_norm(OnnxGraph& graph, const OnnxLayer& layer) {
  const int64_t groups = layer.spec.groups, channels = layer.input[0];
  const std::vector<float> ones(static_cast<size_t>(groups), 1.0F), zeros(static_cast<size_t>(groups), 0.0F);
  const std::vector<int64_t> by_group{0, groups, -1}, one_axis{groups};
  std::vector<int64_t> as_before = dims(layer.input), per_channel(as_before.size(), 1);
  as_before.insert(as_before.begin(), 0);
  per_channel[0] = channels;
  const auto name = [&](const char* part) { return layer.name + "." + part; };

  const std::string grouped =
      graph.node("Reshape", {layer.inputs[0], graph.constant(name("by_group"), by_group)}, name("grouped")).output();
  const std::string normalised =
      graph
          .node("InstanceNormalization",
                {grouped, graph.constant(name("ones"), one_axis, ones), graph.constant(name("zeros"), one_axis, zeros)},
                name("normalised"))
          .set("epsilon", layer.spec.eps)
          .output();
  const std::string result =
      graph.node("Reshape", {normalised, graph.constant(name("as_before"), as_before)}, layer.name).output();
  if (!layer.spec.affine) return result;
  const auto weights = [&](const char* which) {
    const std::string flat = parameter(graph, layer, which, {channels});
    const std::string shape = graph.constant(name(which) + ".shape", per_channel);
    return graph.node("Reshape", {flat, shape}, name(which) + ".per_channel").output();
  };
  const std::string scaled = graph.node("Mul", {result, weights("weight")}, name("scaled")).output();
  return graph.node("Add", {scaled, weights("bias")}, name("shifted")).output();
}

std::string flatten(OnnxGraph& graph, const OnnxLayer& layer) {
  return graph.node("Flatten", layer.inputs, layer.name).set("axis", int64_t{1}).output();
}

std::string dropout(OnnxGraph&, const OnnxLayer& layer) { return layer.inputs[0]; }

constexpr const char *kRelu = "Relu", *kTanh = "Tanh", *kSigmoid = "Sigmoid", *kAdd = "Add";

struct Kind {
  const char* name;
  std::string (*add)(OnnxGraph&, const OnnxLayer&);
};

constexpr Kind kKinds[] = {
    {"linear", linear},
    {"conv2d", conv2d},
    {"relu", plain<kRelu>},
    {"leaky_relu", leaky_relu},
    {"gelu", gelu},
    {"tanh", plain<kTanh>},
    {"sigmoid", plain<kSigmoid>},
    {"softmax", softmax},
    {"max_pool2d", add_pool},
    {"avg_pool2d", add_pool},
    {"adaptive_avg_pool2d", add_adaptive_pool},
    {"adaptive_max_pool2d", add_adaptive_pool},
    {"batch_norm", batch_norm},
    {"layer_norm", layer_norm},
    {"group_norm", group_norm},
    {"flatten", flatten},
    {"add", plain<kAdd>},
    {"dropout", dropout},
};

}  // namespace

std::string add_layer(OnnxGraph& graph, const OnnxLayer& layer) {
  const auto* kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return layer.spec.kind == k.name; });
  if (kind == std::end(kKinds)) throw_error("layer '{}': {} has no form in ONNX here", layer.name, layer.spec.kind);
  return kind->add(graph, layer);
}

}  // namespace lockstep
