// Networks by name: the ones the articles and the examples train.
#include "core/error.h"
#include "nn/model_spec.h"

namespace lockstep {
namespace {

LayerSpec plain(const char* kind) { return {.kind = kind}; }

LayerSpec linear(int64_t out, const char* name = "") { return {.kind = "linear", .name = name, .out = out}; }

LayerSpec conv3x3(int64_t out, const char* name) {
  return {.kind = "conv2d", .name = name, .out = out, .kernel = {3, 3}};
}

LayerSpec dropout(double p, const char* name) { return {.kind = "dropout", .name = name, .p = p}; }

LayerSpec max_pool2() { return {.kind = "max_pool2d", .kernel = {2, 2}, .stride = {2, 2}}; }

std::vector<LayerSpec> mlp(std::initializer_list<int64_t> widths) {
  std::vector<LayerSpec> layers;
  for (int64_t width : widths) {
    if (!layers.empty()) layers.push_back(plain("relu"));
    layers.push_back(linear(width));
  }
  return layers;
}

// The network of PyTorch's MNIST example: 1,199,882 parameters on 28 x 28 images.
std::vector<LayerSpec> mnist(bool with_dropout) {
  std::vector<LayerSpec> layers{conv3x3(32, "conv1"), plain("relu"), conv3x3(64, "conv2"), plain("relu"), max_pool2()};
  if (with_dropout) layers.push_back(dropout(0.25, "dropout1"));
  layers.push_back(plain("flatten"));
  layers.push_back(linear(128, "fc1"));
  layers.push_back(plain("relu"));
  if (with_dropout) layers.push_back(dropout(0.5, "dropout2"));
  layers.push_back(linear(10, "fc2"));
  return layers;
}

struct Preset {
  const char* name;
  std::vector<LayerSpec> (*build)();
};

constexpr Preset kPresets[] = {
    {"mlp_752",
     [] {
       return mlp({30, 20, 2});
     }},                                             // 2 inputs: 752 parameters
    {"mnist_convnet", [] { return mnist(false); }},  // without dropout
    {"mnist_example", [] { return mnist(true); }},   // with both dropouts
};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

ModelSpec preset_model(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return {.preset = name, .layers = preset.build()};
  }
  throw_error("unknown model preset '{}'; known: {}", name, fmt::join(preset_names(), ", "));
}

}  // namespace lockstep
