// The linear and conv2d layers against PyTorch's numbers, finite differences and their own messages.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/layers.h"
#include "support/finite_difference.h"
#include "support/golden.h"
#include "support/layer_harness.h"
#include "support/oracle.h"
#include "support/test_backend.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

LayerSpec conv_spec(int64_t out, std::array<int64_t, 2> kernel) {
  LayerSpec spec;
  spec.kind = "conv2d";
  spec.out = out;
  spec.kernel = kernel;
  return spec;
}

LayerSpec linear_spec(int64_t out) {
  LayerSpec spec;
  spec.kind = "linear";
  spec.out = out;
  return spec;
}

LayerSpec spec_of(const nlohmann::json& entry) {
  const Shape weight = shape_of(entry["weight"]);
  LayerSpec spec = linear_spec(weight[0]);
  spec.kind = entry["op"];
  spec.bias = entry.contains("bias");
  if (spec.kind == "linear") return spec;
  const auto& settings = entry["settings"];
  spec.kernel = {weight[2], weight[3]};
  spec.stride = pair(settings["stride"]);
  spec.padding = pair(settings["padding"]);
  spec.dilation = pair(settings["dilation"]);
  spec.groups = settings["groups"];
  return spec;
}

LayerPtr make_layer(const LayerSpec& spec) { return spec.kind == "linear" ? make_linear(spec) : make_conv2d(spec); }

std::vector<float> numbers(const Shape& shape, uint32_t seed) {
  return oracle::random_floats(static_cast<size_t>(shape.numel()), seed);
}

}  // namespace

TEST_CASE("linear and conv2d agree with PyTorch") {
  int seen = 0;
  for (const bool own_choices : {true, false}) {
    const auto backend = make_test_backend({.winograd = own_choices, .small_kernels = own_choices});
    for (const auto& entry : golden("loss_and_norm.json")["ops"]) {
      if (entry["op"] != "linear" && entry["op"] != "conv2d") continue;
      CAPTURE(entry["settings"].dump());
      LayerHarness layer(*backend, make_layer(spec_of(entry)), shape_of(entry["x"]));
      layer.set_parameter("weight", flat_f32(entry["weight"]));
      if (entry.contains("bias")) layer.set_parameter("bias", flat_f32(entry["bias"]));
      CHECK_EQ(differs(layer.forward(flat_f32(entry["x"])), flat_f32(entry["y"]), 1e-5, 1e-5), "");
      CHECK_EQ(differs(layer.backward(flat_f32(entry["grad_y"]))[0], flat_f32(entry["grad_x"]), 1e-5, 1e-5), "");
      CHECK_EQ(differs(layer.gradient("weight"), flat_f32(entry["grad_weight"]), 1e-5, 1e-5), "");
      if (entry.contains("bias"))
        CHECK_EQ(differs(layer.gradient("bias"), flat_f32(entry["grad_bias"]), 1e-5, 1e-5), "");
      ++seen;
    }
  }
  CHECK_EQ(seen, 18);
}

TEST_CASE("gradients of linear and conv2d with a fused ReLU agree with finite differences") {
  const auto backend = make_test_backend({});
  struct Case {
    LayerSpec spec;
    Shape input;
    int64_t block;
  };
  for (const Case& c : {Case{linear_spec(7), Shape{3, 11}, 1}, Case{conv_spec(6, {3, 2}), Shape{2, 3, 6, 5}, 1},
                        Case{conv_spec(16, {3, 3}), Shape{2, 16, 5, 5}, 16}}) {
    CAPTURE(c.spec.kind);
    LayerHarness layer(*backend, make_layer(c.spec), c.input, {.channel_block = c.block, .fuse_relu = true});
    Generator generator(5);
    layer.initialize(generator);
    const std::vector<float> x = numbers(c.input, 1), dy = numbers(layer.output_shape(), 2);
    // Far from the kink: outputs are either clearly positive or clearly negative.
    std::vector<float> bias = layer.parameter("bias");
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = i % 2 == 0 ? 3.0F : -3.0F;
    layer.set_parameter("bias", bias);
    layer.forward(x);
    const std::vector<float> dx = layer.backward(dy)[0], dw = layer.gradient("weight"), db = layer.gradient("bias");
    const std::vector<float> w = layer.parameter("weight");
    CHECK_EQ(gradient_differs([&](const std::vector<float>& v) { return dot(layer.forward(v), dy); }, x, dx, 3), "");
    const auto with = [&](const std::string& name) {
      return [&, name](const std::vector<float>& v) {
        layer.set_parameter(name, v);
        return dot(layer.forward(x), dy);
      };
    };
    CHECK_EQ(gradient_differs(with("weight"), w, dw, 4), "");
    layer.set_parameter("weight", w);
    CHECK_EQ(gradient_differs(with("bias"), bias, db, 5), "");
  }
}

TEST_CASE("a gradient that comes masked is not masked again") {
  const auto backend = make_test_backend({});
  const Shape input{4, 9};
  const std::vector<float> x = numbers(input, 1);
  LayerPtr told = make_linear(linear_spec(6));
  told->gradient_premasked();
  LayerHarness masked(*backend, std::move(told), input, {.fuse_relu = true});
  LayerHarness masking(*backend, make_linear(linear_spec(6)), input, {.fuse_relu = true});
  CHECK_FALSE(masked.binding().backward_reads_output);
  CHECK(masking.binding().backward_reads_output);
  for (LayerHarness* layer : {&masked, &masking}) {
    Generator generator(1);
    layer->initialize(generator);
  }
  const std::vector<float> y = masking.forward(x);
  CHECK_EQ(masked.forward(x), y);
  std::vector<float> dy = numbers(masking.output_shape(), 2);
  const std::vector<float> unmasked = dy;
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
  CHECK_EQ(masked.backward(dy)[0], masking.backward(unmasked)[0]);
  CHECK_EQ(masked.gradient("weight"), masking.gradient("weight"));
  CHECK_NE(masked.backward(unmasked)[0], masking.backward(unmasked)[0]);
}

TEST_CASE("linear and conv2d draw PyTorch's initial values") {
  const auto backend = make_test_backend({});
  LayerSpec grouped = conv_spec(4, {3, 5});
  grouped.groups = 2;
  struct Case {
    LayerSpec spec;
    Shape input;
    int64_t fan_in;
  };
  for (const Case& c : {Case{linear_spec(5), Shape{1, 7}, 7}, Case{grouped, Shape{1, 6, 5, 6}, 45}}) {
    LayerHarness layer(*backend, make_layer(c.spec), c.input);
    Generator generator(3), same(3);
    layer.initialize(generator);
    std::vector<float> weight(static_cast<size_t>(c.spec.out * c.fan_in)), bias(static_cast<size_t>(c.spec.out));
    init_kaiming_uniform(same, weight, c.fan_in);
    init_bias_uniform(same, bias, c.fan_in);
    CHECK_EQ(layer.parameter("weight"), weight);
    CHECK_EQ(layer.parameter("bias"), bias);
  }
}

TEST_CASE("linear and conv2d say what is wrong with their input") {
  const auto message = [](const LayerSpec& spec, const Shape& sample) {
    try {
      make_layer(spec)->infer(std::array{sample});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  LayerSpec linear = linear_spec(3);
  linear.where = "net.yaml:7:5";
  CHECK_EQ(message(linear, Shape{1, 2, 3}),
           "net.yaml:7:5: linear: expected flat samples [features], found [1, 2, 3]: add flatten before it");
  CHECK_NE(message(conv_spec(4, {5, 5}), Shape{1, 4, 8}).find("does not fit"), std::string::npos);
  CHECK_NE(message(conv_spec(4, {1, 1}), Shape{8}).find("[C, H, W]"), std::string::npos);
  LayerSpec groups = conv_spec(4, {1, 1});
  groups.groups = 2;
  CHECK_NE(message(groups, Shape{3, 4, 4}).find("groups"), std::string::npos);
  CHECK_THROWS_AS(make_linear(linear_spec(0)), Error);
  LayerSpec stride = conv_spec(4, {1, 1});
  stride.stride = {0, 1};
  CHECK_THROWS_AS(make_conv2d(stride), Error);
}
