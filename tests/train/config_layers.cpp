// model.layers: shorthands, fields, names and references.
#include <doctest/doctest.h>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string with_layers(const std::string& layers) {
  return "data: {train: {kind: toy}}\nmodel:\n  layers:\n" + layers;
}

std::vector<LayerSpec> layers_of(const std::string& layers) {
  return parse_config(with_layers(layers), "config.yaml", {}).model.layers;
}

std::string layer_refusal(const std::string& layers) { return message(with_layers(layers)); }

using Pair = std::array<int64_t, 2>;

}  // namespace

TEST_CASE("every shorthand sets its kind's main field") {
  const auto layers = layers_of(
      "    - {linear: 128}\n    - relu\n    - {dropout: 0.25}\n    - {conv2d: 32}\n    - {max_pool2d: 2}\n"
      "    - {adaptive_avg_pool2d: [1, 2]}\n    - flatten\n    - batch_norm\n    - {batch_norm: {}}\n    - "
      "{layer_norm: [3, 4]}\n"
      "    - {group_norm: 4}\n    - {add: 0}\n    - {softmax: }\n    - {leaky_relu: 0.2}\n");
  REQUIRE_EQ(layers.size(), 14);
  CHECK_EQ(layers[0].kind, "linear");
  CHECK_EQ(layers[0].out, 128);
  CHECK_EQ(layers[0].where, "config.yaml:4:7");
  CHECK_EQ(layers[1].kind, "relu");
  CHECK_EQ(layers[1].where, "config.yaml:5:7");
  CHECK_EQ(layers[2].p, 0.25);
  CHECK_EQ(layers[3].out, 32);
  CHECK_EQ(layers[4].kernel, Pair{2, 2});
  CHECK_EQ(layers[4].stride, Pair{2, 2});
  CHECK_EQ(layers[5].output_size, Pair{1, 2});
  CHECK_EQ(layers[9].normalized_shape, std::vector<int64_t>{3, 4});
  CHECK_EQ(layers[10].groups, 4);
  CHECK_EQ(layers[11].add, "0");
  CHECK_EQ(layers[12].kind, "softmax");
  CHECK_EQ(layers[13].negative_slope, 0.2);
}

TEST_CASE("a convolution with everything") {
  const auto layers = layers_of(
      "    - {conv2d: {out: 32, kernel: [3, 5], stride: 2, padding: [1, 2], groups: 4, dilation: 2, bias: false}, "
      "name: conv1}\n");
  CHECK_EQ(layers[0].name, "conv1");
  CHECK_EQ(layers[0].kernel, Pair{3, 5});
  CHECK_EQ(layers[0].stride, Pair{2, 2});
  CHECK_EQ(layers[0].padding, Pair{1, 2});
  CHECK_EQ(layers[0].groups, 4);
  CHECK_EQ(layers[0].dilation, Pair{2, 2});
  CHECK_FALSE(layers[0].bias);
}

TEST_CASE("the stride of a pooling is its kernel unless given") {
  const auto layers = layers_of(
      "    - {avg_pool2d: {kernel: [3, 2], padding: 1, count_include_pad: false}}\n"
      "    - {max_pool2d: {kernel: 3, stride: 2, ceil_mode: true}}\n");
  CHECK_EQ(layers[0].stride, Pair{3, 2});
  CHECK_FALSE(layers[0].count_include_pad);
  CHECK_EQ(layers[1].stride, Pair{2, 2});
  CHECK(layers[1].ceil_mode);
}

TEST_CASE("momentum of a batch norm may be null") {
  const auto layers =
      layers_of("    - {batch_norm: {momentum: null}}\n    - {batch_norm: {momentum: 0.2}}\n    - batch_norm\n");
  CHECK_FALSE(layers[0].momentum.has_value());
  CHECK_EQ(layers[1].momentum, 0.2);
  CHECK_EQ(layers[2].momentum, 0.1);
}

TEST_CASE("wrong entries are named with their position") {
  CHECK_EQ(layer_refusal("    - relus\n"),
           "config.yaml:4:7: model.layers.0: unknown layer kind 'relus'; did you mean 'relu'?");
  CHECK_EQ(layer_refusal("    - {conv_2d: 3}\n"),
           "config.yaml:4:8: model.layers.0: unknown layer kind 'conv_2d'; did you mean 'conv2d'?");
  CHECK_EQ(layer_refusal("    - linear\n"), "config.yaml:4:7: model.layers.0.linear: missing key 'out'");
  CHECK_EQ(layer_refusal("    - {linear: }\n"), "config.yaml:4:16: model.layers.0.linear: missing key 'out'");
  CHECK_EQ(layer_refusal("    - {linear: 0}\n"),
           "config.yaml:4:16: model.layers.0.linear.out: 0 is out of range; expected an integer 1 <= x <= 1073741824");
  CHECK_EQ(layer_refusal("    - {linear: 3, relu: }\n"),
           "config.yaml:4:19: model.layers.0: an entry has one kind, found linear and relu");
  CHECK_EQ(layer_refusal("    - {linear: 3, bias: false}\n"),
           "config.yaml:4:19: model.layers.0: 'bias' belongs inside linear: {linear: {bias: ...}}");
  CHECK_EQ(
      layer_refusal("    - {linear: {out: 3, kernel: 3}}\n"),
      "config.yaml:4:25: unknown key 'kernel' in model.layers.0.linear; did you mean model.layers.conv2d.kernel or "
      "model.layers.max_pool2d.kernel or model.layers.avg_pool2d.kernel?");
  CHECK_EQ(layer_refusal("    - {linear: {out_features: 3}}\n"),
           "config.yaml:4:17: unknown key 'out_features' in model.layers.0.linear; did you mean 'out'?");
  CHECK_EQ(layer_refusal("    - {relu: {slope: 3}}\n"),
           "config.yaml:4:15: unknown key 'slope' in model.layers.0.relu; did you mean "
           "model.layers.leaky_relu.negative_slope?");
  CHECK_EQ(layer_refusal("    - [relu]\n"),
           "config.yaml:4:7: model.layers.0: expected a layer such as relu or {linear: 128}, found a list");
  CHECK_EQ(layer_refusal("    - {dropout: 1.5}\n"),
           "config.yaml:4:17: model.layers.0.dropout.p: 1.5 is out of range; expected a number 0 <= x <= 1");
  CHECK_EQ(
      layer_refusal("    - {max_pool2d: {kernel: [1, 2, 3]}}\n"),
      "config.yaml:4:29: model.layers.0.max_pool2d.kernel: expected an integer or [height, width], found a list of 3");
}

TEST_CASE("an entry with no kind lists the kinds") {
  const std::string error = layer_refusal("    - {name: a}\n");
  CHECK(error.starts_with("config.yaml:4:7: model.layers.0: the entry has no kind; known: linear, conv2d, relu"));
}

TEST_CASE("names are unique over the list and its indices") {
  CHECK_EQ(layer_refusal("    - {linear: 3, name: a}\n    - {linear: 3, name: a}\n"),
           "config.yaml:5:25: model.layers.1: the name 'a' is taken by model.layers.0");
  CHECK_EQ(
      layer_refusal("    - relu\n    - {linear: 3, name: \"0\"}\n"),
      "config.yaml:5:25: model.layers.1: the name '0' is taken by model.layers.0 (unnamed: its index is its name)");
  CHECK_EQ(layer_refusal("    - {linear: 3, name: input}\n"),
           "config.yaml:4:25: model.layers.0.name: 'input' is the network's input");
  CHECK_EQ(layer_refusal("    - {linear: 3, name: ''}\n"), "config.yaml:4:25: model.layers.0.name: the text is empty");
}

TEST_CASE("references are to layers that come before") {
  const auto layers = layers_of(
      "    - {linear: 3, name: a}\n    - {linear: 3, input: a}\n    - {add: {layer: a}, input: '1'}\n    - {add: "
      "input}\n");
  CHECK_EQ(layers[1].input, "a");
  CHECK_EQ(layers[2].add, "a");
  CHECK_EQ(layers[2].input, "1");
  CHECK_EQ(layers[3].add, "input");
  CHECK_EQ(layer_refusal("    - {linear: 3, name: conv1}\n    - {add: conv2}\n"),
           "config.yaml:5:13: model.layers.1.add: no layer is named 'conv2'; did you mean 'conv1'?");
  CHECK_EQ(layer_refusal("    - {linear: 3, input: b}\n    - {linear: 3, name: b}\n"),
           "config.yaml:4:26: model.layers.0.input: the layer 'b' does not come before this one");
  CHECK_EQ(layer_refusal("    - {add: 0}\n"),
           "config.yaml:4:13: model.layers.0.add: the layer '0' does not come before this one");
}
