// Layers against PyTorch's own outputs and gradients (golden/loss_and_norm.json).
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "nn/layers/layers.h"
#include "support/golden.h"
#include "support/layer_harness.h"
#include "support/test_backend.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

LayerSpec spec_of(const nlohmann::json& entry) {
  const auto& settings = entry["settings"];
  LayerSpec spec;
  spec.kind = entry["op"];
  if (settings.contains("kernel")) spec.kernel = pair(settings["kernel"]);
  if (settings.contains("stride")) spec.stride = pair(settings["stride"]);
  if (settings.contains("padding")) spec.padding = pair(settings["padding"]);
  if (settings.contains("output")) spec.output_size = pair(settings["output"]);
  spec.ceil_mode = settings.value("ceil_mode", false);
  spec.count_include_pad = settings.value("count_include_pad", true);
  spec.eps = settings.value("eps", 1e-5);
  spec.groups = settings.value("num_groups", 1);
  spec.affine = entry.contains("weight");
  spec.negative_slope = settings.value("negative_slope", 0.01);
  spec.tanh_approximation = settings.value("approximate", "none") == "tanh";
  if (settings.contains("normalized_shape")) spec.normalized_shape = flat_i64(settings["normalized_shape"]);
  return spec;
}

const std::map<std::string, std::function<LayerPtr(const LayerSpec&)>> kMakers = {
    {"layer_norm", make_layer_norm},
    {"group_norm", make_group_norm},
    {"max_pool2d", make_max_pool2d},
    {"avg_pool2d", make_avg_pool2d},
    {"relu", make_relu},
    {"adaptive_avg_pool2d", make_adaptive_avg_pool2d},
    {"softmax", make_softmax},
    {"gelu", make_gelu},
    {"sigmoid", make_sigmoid},
    {"leaky_relu", make_leaky_relu},
    {"tanh", make_tanh},
};

}  // namespace

TEST_CASE("layers: outputs and gradients equal PyTorch's for every operation") {
  const nlohmann::json file = golden("loss_and_norm.json");
  const auto backend = make_test_backend({});
  int checked = 0;
  for (const auto& entry : file["ops"]) {
    const LayerSpec spec = spec_of(entry);
    const auto maker = kMakers.find(spec.kind);
    if (maker == kMakers.end()) continue;  // layers with weights of their own are tested elsewhere
    CAPTURE(spec.kind);
    CAPTURE(entry["settings"].dump());
    LayerHarness harness(*backend, maker->second(spec), shape_of(entry["x"]));
    if (spec.affine) {
      harness.set_parameter("weight", flat_f32(entry["weight"]));
      harness.set_parameter("bias", flat_f32(entry["bias"]));
    }
    const double tolerance = spec.kind == "relu" || spec.kind == "max_pool2d" ? 0 : 1e-5;
    CHECK_EQ(differs(harness.forward(flat_f32(entry["x"])), flat_f32(entry["y"]), tolerance, tolerance), "");
    CHECK_EQ(harness.output_shape().str(), shape_of(entry["y"]).str());
    const auto dx = harness.backward(flat_f32(entry["grad_y"]));
    CHECK_EQ(differs(dx[0], flat_f32(entry["grad_x"]), tolerance, tolerance), "");
    if (spec.affine) {
      CHECK_EQ(differs(harness.gradient("weight"), flat_f32(entry["grad_weight"]), 1e-5, 1e-5), "");
      CHECK_EQ(differs(harness.gradient("bias"), flat_f32(entry["grad_bias"]), 1e-5, 1e-5), "");
    }
    ++checked;
  }
  CHECK_EQ(checked, 21);
}

TEST_CASE("batch norm: outputs and gradients and running statistics equal PyTorch's step by step") {
  const nlohmann::json file = golden("loss_and_norm.json");
  const auto backend = make_test_backend({});
  CHECK_EQ(file["batchnorm"].size(), 3);
  for (const auto& entry : file["batchnorm"]) {
    CAPTURE(entry["kind"].dump());
    LayerSpec spec;
    spec.kind = "batch_norm";
    spec.eps = entry["eps"];
    spec.momentum = entry["momentum"].is_null() ? std::nullopt : std::optional<double>(entry["momentum"].get<double>());
    std::vector<float> mean(entry["weight"].size(), 0), variance(mean.size(), 1), tracked(1, 0);
    const auto start = [&](LayerHarness& harness) {
      harness.set_parameter("weight", flat_f32(entry["weight"]));
      harness.set_parameter("bias", flat_f32(entry["bias"]));
      harness.set_buffer("running_mean", mean);
      harness.set_buffer("running_var", variance);
      harness.set_buffer("num_batches_tracked", tracked);
    };
    for (const auto& step : entry["steps"]) {
      LayerHarness harness(*backend, make_batch_norm(spec), shape_of(step["x"]));
      start(harness);
      CHECK_EQ(differs(harness.forward(flat_f32(step["x"])), flat_f32(step["y"]), 1e-5, 1e-5), "");
      mean = harness.buffer("running_mean");
      variance = harness.buffer("running_var");
      tracked = harness.buffer("num_batches_tracked");
      CHECK_EQ(differs(mean, flat_f32(step["running_mean"]), 1e-6, 1e-7), "");
      CHECK_EQ(differs(variance, flat_f32(step["running_var"]), 1e-6, 1e-7), "");
      CHECK_EQ(tracked[0], step["num_batches_tracked"].get<float>());
      if (!step.contains("grad_y")) continue;
      const auto dx = harness.backward(flat_f32(step["grad_y"]));
      CHECK_EQ(differs(dx[0], flat_f32(step["grad_x"]), 1e-5, 1e-5), "");
      CHECK_EQ(differs(harness.gradient("weight"), flat_f32(step["grad_weight"]), 1e-5, 1e-5), "");
      CHECK_EQ(differs(harness.gradient("bias"), flat_f32(step["grad_bias"]), 1e-5, 1e-5), "");
    }
    if (!entry.contains("eval")) continue;
    LayerHarness harness(*backend, make_batch_norm(spec), shape_of(entry["eval"]["x"]), {.phase = Phase::inference});
    start(harness);
    CHECK_EQ(differs(harness.forward(flat_f32(entry["eval"]["x"])), flat_f32(entry["eval"]["y"]), 1e-5, 1e-5), "");
    CHECK_EQ(differs(harness.buffer("running_mean"), mean, 0, 0), "");
  }
}

TEST_CASE("dropout: with torch_stream the mask is PyTorch's") {
  const nlohmann::json file = golden("rng.json");
  const auto backend = make_test_backend({});
  int checked = 0;
  for (const auto& entry : file["cases"]) {
    if (entry["kind"] != "dropout") continue;
    CAPTURE(entry.dump());
    LayerSpec spec;
    spec.kind = "dropout";
    spec.p = entry["p"];
    spec.torch_stream = true;
    const std::vector<float> values = flat_f32(entry["values"]);
    std::vector<float> x;
    for (size_t i = 0; i < values.size(); ++i) x.push_back(static_cast<float>(i + 1));
    LayerHarness harness(*backend, make_dropout(spec, 0), Shape{1, std::ssize(x)});
    Generator generator(static_cast<uint64_t>(entry["seed"].get<int64_t>()));
    CHECK_EQ(differs_bits(harness.forward(x, {.key = 0, .torch = &generator}), values), "");
    CHECK_EQ(
        generator.uniform_float(),
        flat_f32(entry["next_rand"].is_array() ? entry["next_rand"] : nlohmann::json::array({entry["next_rand"]}))[0]);
    ++checked;
  }
  CHECK(checked > 0);
}
