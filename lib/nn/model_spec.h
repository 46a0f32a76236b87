// The layer list of a config as plain data, before shapes are known. Parsed by train/config, expanded from presets by
// nn/presets, built by nn/builder.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

class Layer;

// One entry of `model.layers`. Only the fields of its kind are read; defaults are PyTorch's.
struct LayerSpec {
  std::string
      kind;  // linear, conv2d, relu, leaky_relu, gelu, tanh, sigmoid, max_pool2d, avg_pool2d, adaptive_avg_pool2d,
             // adaptive_max_pool2d, flatten, dropout, batch_norm, layer_norm, group_norm, add, softmax
  std::string name;   // parameter prefix and reference; empty: the index in the list, as in nn.Sequential
  std::string input;  // name of the layer whose output is read; empty: the entry before; "input": the network's input
  std::string add;    // kind add: name of the second operand

  int64_t out = 0;  // linear: features, conv2d: channels
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0},
      dilation{1, 1};  // pooling: stride defaults to kernel
  int64_t groups = 1;  // conv2d, group_norm
  bool bias = true;
  bool ceil_mode = false, count_include_pad = true;  // pooling
  std::array<int64_t, 2> output_size{1, 1};          // adaptive pooling
  double p = 0.5;                                    // dropout
  bool torch_stream = false;                         // dropout: draw the mask as PyTorch's CPU generator does
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // batch_norm; empty: cumulative average
  bool affine = true;
  std::vector<int64_t> normalized_shape;  // layer_norm; empty: all axes of a sample
  double negative_slope = 0.01;           // leaky_relu
  bool tanh_approximation = false;        // gelu
  std::string where;                      // file:line:column, for messages
  // A program's own layer, in place of the kinds that a file can name; called for every graph (nn/layer.h).
  std::function<std::unique_ptr<Layer>(const LayerSpec&)> make = nullptr;
};

struct ModelSpec {
  std::string preset;  // informative, when the list came from one
  std::vector<LayerSpec> layers;
};

// The layer list of a named network ("mnist_convnet", "mnist_example", "mlp_752", ...). Throws Error naming the known
// ones.
ModelSpec preset_model(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace lockstep
